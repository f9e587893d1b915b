//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

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
	<-time.After(time.Second) // managedFields record seconds
	serve(t, group, "v1beta1", "v1")
	waitForServed(t, group, "v1beta1", "v1")
	for _, name := range names {
		object := cronTab(group, "v1beta1", name)
		patch(t, object, `{"metadata":{"labels":{"in":"window"}}}`)
		expect.Equal(t, "entries in managedFields", 0, len(object.GetManagedFields()))
	}
	misbehave(t, policy, faults{})
	checkGap(t, group, []string{"default/a", "default/b", "default/c"})
	uncertain, _ := hasEvent(t, aboutPolicy, policy, v1alpha1.ReasonWrittenUnconverted, "at least")
	expect.Equal(t, "there may be more", false, uncertain)
}
