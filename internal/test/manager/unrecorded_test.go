//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestUnrecordedWrites: three objects get a label in the unconverted window, of which managedFields have no
// entry. They are counted by their resourceVersion.
func TestUnrecordedWrites(t *testing.T) {
	t.Parallel()
	const group, policy = "unrecorded.example.com", "crontabs.unrecorded.example.com"
	define(t, group, "v1beta1")
	names := []string{"a", "b", "c"}
	for _, name := range append([]string{"untouched"}, names...) {
		createCronTab(t, group, "v1beta1", name, "a.example.com:1")
		patch(t, cronTab(group, "v1beta1", name), `{"metadata":{"managedFields":[{}]}}`)
	}
	misbehave(t, policy, faults{Manager: fault{NotFound: true}})
	createPolicy(t, group, nil)
	waitForServed(t, group, "v1beta1")
	nextSecond(t, group)
	serve(t, group, "v1beta1", "v1")
	waitForServed(t, group, "v1beta1", "v1")
	for _, name := range names {
		object := cronTab(group, "v1beta1", name)
		patch(t, object, `{"metadata":{"labels":{"in":"window"}}}`)
		expect.Equal(t, "entries in managedFields", 0, len(object.GetManagedFields()))
	}
	misbehave(t, policy, faults{})
	expect.Eventually(t, "an event names them", func() (bool, string) {
		events := &eventsv1.EventList{}
		expect.NoError(t, cluster.List(t.Context(), events))
		at := slices.IndexFunc(events.Items, func(event eventsv1.Event) bool {
			return event.Regarding.Name == policy && event.Reason == v1alpha1.ReasonWrittenUnconverted
		})
		if at < 0 {
			return false, fmt.Sprintf("%+v", getPolicy(t, policy).Status.UnconvertedWindow)
		}
		note := events.Items[at].Note
		return strings.HasPrefix(note, "3 objects were written") && strings.Contains(note, "default/a, default/b, default/c:"), note
	})
}
