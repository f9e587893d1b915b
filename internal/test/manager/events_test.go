//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// The kinds that events are about.
const aboutPolicy, aboutCRD = "ConversionPolicy", "CustomResourceDefinition"

// eventsOf returns the events of a policy, or of the CustomResourceDefinition of that name.
func eventsOf(t *testing.T, kind, name string) []eventsv1.Event {
	t.Helper()
	list := &eventsv1.EventList{}
	expect.NoError(t, cluster.List(t.Context(), list))
	return slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool { return event.Regarding.Kind != kind || event.Regarding.Name != name })
}

// hasEvent reports whether there is an event with this reason, and this text in its note, and otherwise
// which there are.
func hasEvent(t *testing.T, kind, name, reason, note string) (has bool, all string) {
	t.Helper()
	var reasons []string
	for _, event := range eventsOf(t, kind, name) {
		has = has || event.Reason == reason && strings.Contains(event.Note, note)
		reasons = append(reasons, event.Reason)
	}
	return has, fmt.Sprint(reasons)
}

// waitEvent waits for an event of a policy.
func waitEvent(t *testing.T, policy, reason string) {
	t.Helper()
	waitEventOf(t, aboutPolicy, policy, reason, "")
}

func waitEventOf(t *testing.T, kind, name, reason, note string) {
	t.Helper()
	expect.Eventually(t, "an event "+reason+" of the "+kind, func() (bool, string) { return hasEvent(t, kind, name, reason, note) })
}

// checkWarned waits for a warning of a policy and of its CustomResourceDefinition.
func checkWarned(t *testing.T, name, reason, note string) {
	t.Helper()
	for _, kind := range []string{aboutPolicy, aboutCRD} {
		waitEventOf(t, kind, name, reason, note)
		for _, event := range eventsOf(t, kind, name) {
			if event.Reason == reason && event.Type != corev1.EventTypeWarning {
				t.Errorf("the event %s of the %s is %s", reason, kind, event.Type)
			}
		}
	}
}
