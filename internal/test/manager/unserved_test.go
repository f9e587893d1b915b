//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRestoredStatus: a tool restores the status of a CustomResourceDefinition from before its migration, and
// without conditions and names, so that API servers do not serve the kind for some seconds. The policy migrates again,
// although the first run finds nothing, and prunes.
func TestRestoredStatus(t *testing.T) {
	t.Parallel()
	const group, policy = "unserved.runs.example.com", "crontabs.unserved.runs.example.com"
	define(t, group, "v1beta1")
	createCronTab(t, group, "v1beta1", "cron", "a.example.com:1")
	changeCRD(t, policy, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = versionsOf(t, "v1", "v1beta1")
	})
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic })
	migrated := func(what string) {
		t.Helper()
		waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated, nil)
		expect.Eventually(t, what, func() (bool, string) {
			stored := getCRD(t, policy).Status.StoredVersions
			return slices.Equal(stored, []string{"v1"}), fmt.Sprint(stored)
		})
	}
	migrated("storedVersions are pruned")
	before := getPolicy(t, policy).Status.Migration.StartTime
	patchStatus(t, getCRD(t, policy), `{"status":{"storedVersions":["v1beta1"],"conditions":[],"acceptedNames":{"plural":"","kind":""}}}`)
	expect.Eventually(t, "another run has succeeded", func() (bool, string) {
		run := getPolicy(t, policy).Status.Migration
		return run.StartTime.After(before.Time) && run.State == v1alpha1.MigrationSucceeded, fmt.Sprintf("%+v", run)
	})
	migrated("storedVersions are pruned again")
}
