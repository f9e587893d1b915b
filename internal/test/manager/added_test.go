//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestVersionIsAdded: reads at a version that was just added fail until its rules are verified, and say why.
// Reads at the old version never fail. The policy reports no failure.
func TestVersionIsAdded(t *testing.T) {
	t.Parallel()
	const group, policy = "added.example.com", "crontabs.added.example.com"
	createPolicy(t, group, nil)
	define(t, group, "v1beta1")
	createCronTab(t, group, "v1beta1", "before", "a.example.com:1")
	waitReady(t, policy, v1alpha1.ReasonWaitingForVersion)
	misbehave(t, policy, faults{Manager: fault{NotFound: true}})
	serve(t, group, "v1beta1", "v1")
	readOld := func() {
		_, err := read(t, group, "v1beta1", "before")
		expect.NoError(t, err)
	}
	expect.Eventually(t, "a read at the new version says that its rules are rolled out", func() (bool, string) {
		readOld()
		_, err := read(t, group, "v1", "before")
		return strings.Contains(fmt.Sprint(err), "is converted once its ruleset is rolled out"), fmt.Sprint(err)
	})
	misbehave(t, policy, faults{})
	expect.Eventually(t, "it is read", func() (bool, string) {
		readOld()
		object, err := read(t, group, "v1", "before")
		return err == nil && object["host"] == "a.example.com", fmt.Sprint(object, err)
	})
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	expect.Equal(t, "reported failures", 0, len(getPolicy(t, policy).Status.ConversionFailures))
	for _, kind := range []string{aboutPolicy, aboutCRD} {
		reported, _ := hasEvent(t, kind, policy, v1alpha1.ReasonConversionFailed, "")
		expect.Equal(t, "an event of the "+kind+" reports failed conversions", false, reported)
	}
}
