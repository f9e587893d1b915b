//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// migrateSlowly migrates 100 objects of a group to v1, one a second.
func migrateSlowly(t *testing.T, group string, change func(*v1alpha1.ConversionPolicySpec)) {
	t.Helper()
	define(t, group, "v1beta1", "v1")
	for i := range 100 {
		createCronTab(t, group, "v1beta1", fmt.Sprint("cron-", i), "a.example.com:1")
	}
	changeCRD(t, "crontabs."+group, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = versionsOf(t, "v1", "v1beta1")
	})
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.Migration.Trigger, policy.Spec.Migration.MaxWritesPerSecond = "once", new(int32(1))
		change(&policy.Spec)
	})
}

// waitJob waits until the only Job of a policy is paused, or not.
func waitJob(t *testing.T, policy string, suspended bool) *batchv1.Job {
	t.Helper()
	jobs := &batchv1.JobList{}
	expect.Eventually(t, fmt.Sprintf("the migration is suspended: %t", suspended), func() (bool, string) {
		expect.NoError(t, cluster.List(t.Context(), jobs, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child(policy)}))
		return len(jobs.Items) == 1 && jobs.Items[0].DeletionTimestamp == nil && ptr.Deref(jobs.Items[0].Spec.Suspend, false) == suspended, fmt.Sprintf("%d Jobs", len(jobs.Items))
	})
	return &jobs.Items[0]
}

// TestSuspendedMigration: a migration that is suspended, resumed and paced again continues where it was.
// Its result is migration evidence that outlives its Job. The test is not parallel: to replace a Job, the
// manager needs Kubernetes' garbage collector, which stalls while a converter of any kind fails.
func TestSuspendedMigration(t *testing.T) {
	const group, policy = "suspended.runs.example.com", "crontabs.suspended.runs.example.com"
	migrateSlowly(t, group, func(*v1alpha1.ConversionPolicySpec) {})
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating, nil)
	first := waitJob(t, policy, false)
	expect.Eventually(t, "some objects are rewritten", func() (bool, string) {
		run := getPolicy(t, policy).Status.Migration
		return run.Rewritten > 1, fmt.Sprintf("%+v", run)
	})
	patch(t, getPolicy(t, policy), `{"spec":{"migration":{"suspend":true}}}`)
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrationSuspended, []string{"of 100 objects"})
	waitJob(t, policy, true)
	done := getPolicy(t, policy).Status.Migration.Rewritten
	waitGone(t, names.MigrationRights(policy), &rbacv1.ClusterRole{})

	patch(t, getPolicy(t, policy), `{"spec":{"migration":{"suspend":false}}}`)
	expect.Equal(t, "UID of the Job in which it goes on", first.UID, waitJob(t, policy, false).UID)
	patch(t, getPolicy(t, policy), `{"spec":{"migration":{"maxWritesPerSecond":1000}}}`)
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated, nil)
	last := waitJob(t, policy, false)
	if args := last.Spec.Template.Spec.Containers[0].Args; last.UID == first.UID || !strings.Contains(strings.Join(args, " "), `"maxWritesPerSecond":1000`) {
		t.Errorf("the last Job has the arguments %v", args)
	}
	is := getPolicy(t, policy).Status
	if is.Migration.Rewritten < done || is.Migration.Rewritten+is.Migration.Unchanged != 100 || is.MigrationEvidence == nil || is.Migration.Total != 100 {
		t.Errorf("after %d objects: status.migration is %+v, the evidence %+v", done, is.Migration, is.MigrationEvidence)
	}
	expect.Equal(t, "storedVersions", []string{"v1"}, getCRD(t, policy).Status.StoredVersions)
	checkRunEvents(t, policy, v1alpha1.ReasonMigrating, v1alpha1.ReasonMigrationSuspended, v1alpha1.ReasonMigrating,
		v1alpha1.ReasonMigrated, v1alpha1.ReasonStoredVersionsPruned)
	waitGone(t, names.MigrationRights(policy), &rbacv1.ClusterRole{})
	expect.NoError(t, client.IgnoreNotFound(cluster.Delete(t.Context(), last, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	patch(t, getPolicy(t, policy), `{"metadata":{"annotations":{"look":"again"}}}`)
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	if is := getPolicy(t, policy).Status; is.MigrationEvidence == nil || is.Migration.Total != 100 {
		t.Errorf("without its Job, the evidence is %+v, the run %+v", is.MigrationEvidence, is.Migration)
	}
}

// checkRunEvents expects exactly one event of each reason on the policy and on the
// CustomResourceDefinition.
func checkRunEvents(t *testing.T, name string, reasons ...string) {
	t.Helper()
	slices.Sort(reasons)
	for _, kind := range []string{aboutPolicy, aboutCRD} {
		expect.Eventually(t, "one event of each on the "+kind, func() (bool, string) {
			var seen []string
			for _, event := range eventsOf(t, kind, name) {
				if strings.HasSuffix(event.Action, "Run") {
					seen = append(seen, slices.Repeat([]string{event.Reason}, 1+int(ptr.Deref(event.Series, eventsv1.EventSeries{}).Count))...)
				}
			}
			slices.Sort(seen)
			diff := cmp.Diff(reasons, seen)
			return diff == "", diff
		})
	}
}

// TestMigrationPodDoesNotStart: the status reports what keeps the pod from starting, until it starts. The test
// is not parallel, like TestSuspendedMigration.
func TestMigrationPodDoesNotStart(t *testing.T) {
	const group, policy = "pending.runs.example.com", "crontabs.pending.runs.example.com"
	migrateSlowly(t, group, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Migration.Workload.NodeSelector = map[string]string{"there": "is-none"}
	})
	expect.Eventually(t, "the condition says why", func() (bool, string) {
		found := apimeta.FindStatusCondition(getPolicy(t, policy).Status.Conditions, v1alpha1.StorageMigratedCondition)
		return found != nil && found.Reason == v1alpha1.ReasonMigrationPodPending && strings.Contains(found.Message, "didn't match Pod's node affinity/selector") &&
			strings.Contains(found.Message, "nodes for it are chosen by spec.migration.workload"), found.String()
	})
	patch(t, getPolicy(t, policy), `{"spec":{"migration":{"workload":null,"maxWritesPerSecond":1000}}}`)
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated, nil)
	expect.Equal(t, "it still waits", "", getPolicy(t, policy).Status.Migration.Message)
}
