//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// migrating activates a CustomResourceDefinition whose objects may be stored at its old version,
// and triggers a migration.
func migrating(t *testing.T, group string) string {
	t.Helper()
	active := activate(t, group, unchanged)
	waitUntilReadEnds(t, active.Name)
	status := client.RawPatch(mergePatch, []byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`))
	expect.NoError(t, cluster.Status().Patch(t.Context(), active, status))
	patchPolicy(t, active.Name, `{"spec":{"migration":{"trigger":"first"}}}`)
	waitFor(t, active.Name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating)
	return active.Name
}

// waitForJob waits until the latest run of a policy has the expected Job.
func waitForJob(t *testing.T, policy, what string, so func(*batchv1.Job) bool) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{}
	expect.Eventually(t, "the Job is "+what, func() (bool, string) {
		run := getPolicy(t, policy).Status.Migration
		if run == nil {
			return false, "no run"
		}
		*job = batchv1.Job{}
		err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Run(policy, run.Run)}, job)
		return err == nil && so(job), fmt.Sprint(err, " ", job.Spec.Suspend, " ", job.DeletionTimestamp)
	})
	return job
}

func goesOn(job *batchv1.Job) bool {
	return !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// record writes the record of a run, as its pod does.
func record(t *testing.T, policy string, change func(*contract.Record)) {
	t.Helper()
	run, crd := getPolicy(t, policy).Status.Migration, getCRD(t, policy)
	now := metav1.Now()
	written := contract.Record{Format: contract.RecordFormat, Run: run.Run, CRDUID: crd.UID, CRDGeneration: crd.Generation,
		State: contract.StateRunning, Barrier: "7", StartTime: &now}
	change(&written)
	if written.Finished() {
		written.CompletionTime = &now
	}
	text, err := json.Marshal(written)
	expect.NoError(t, err)
	patch, err := json.Marshal(map[string]any{"data": map[string]string{contract.RecordKey: string(text)}})
	expect.NoError(t, err)
	expect.NoError(t, cluster.Patch(t.Context(), checkpointOf(t, policy), client.RawPatch(mergePatch, patch)))
}

func checkpointOf(t *testing.T, policy string) *corev1.ConfigMap {
	t.Helper()
	checkpoint := &corev1.ConfigMap{}
	record := getPolicy(t, policy).Status.Migration.Record
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: record.Namespace, Name: record.Name}, checkpoint))
	return checkpoint
}

// specOf returns the run specification in a Job.
func specOf(t *testing.T, job *batchv1.Job) contract.Spec {
	t.Helper()
	args := job.Spec.Template.Spec.Containers[0].Args
	spec, err := contract.ParseSpec(strings.TrimPrefix(args[len(args)-1], "--spec="))
	expect.NoError(t, err)
	return spec
}

func half(written *contract.Record) {
	written.Counters = contract.Counters{Total: 1000, Rewritten: 490, Current: 10}
}

func complete(written *contract.Record) {
	written.State, written.Counters = contract.StateCompleted, contract.Counters{Total: 1000, Rewritten: 990, Current: 10}
}

func failing(written *contract.Record) {
	written.State, written.Counters = contract.StateCompleted, contract.Counters{Total: 1000, Rewritten: 999, Failed: 1}
	written.Failures = []v1alpha1.MigrationFailure{{Object: "default/bad", Message: "denied the request: no"}}
}

// collect does what the garbage collector does after the pods of a deleted Job have ended.
func collect(t *testing.T, job *batchv1.Job) {
	t.Helper()
	expect.Eventually(t, "the Job is gone", func() (bool, string) {
		there := &batchv1.Job{}
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(job), there)
		if apierrors.IsNotFound(err) || err == nil && there.UID != job.UID {
			return true, ""
		}
		expect.NoError(t, err)
		if there.DeletionTimestamp != nil {
			err = cluster.Patch(t.Context(), there, dropFinalizers)
		}
		return false, fmt.Sprint("still there ", err)
	})
}

// TestSuspendedMigration: a migration that is suspended, resumed and paced again continues where it was.
// Its result is migration evidence that outlives its Job.
func TestSuspendedMigration(t *testing.T) {
	name := migrating(t, "suspended.runs.example.com")
	first := waitForJob(t, name, "at work", goesOn)
	record(t, name, half)
	patchPolicy(t, name, `{"spec":{"migration":{"suspend":true}}}`)
	waitForJob(t, name, "suspended", func(job *batchv1.Job) bool { return !goesOn(job) })
	expect.Eventually(t, "the condition says how far it is", func() (bool, string) {
		condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrationSuspended)
		return strings.Contains(condition.Message, "at 500 of 1000 objects"), condition.Message
	})
	expect.Eventually(t, "its rights are gone", func() (bool, string) {
		left := remainingObjects(t, name)
		return left["ClusterRole"]+left["FlowSchema"]+left["ServiceAccount"] == 0, fmt.Sprint(left)
	})
	checkIdle(t, name)

	patchPolicy(t, name, `{"spec":{"migration":{"suspend":false}}}`)
	if job := waitForJob(t, name, "at work again", goesOn); job.UID != first.UID {
		t.Error("it goes on in another Job")
	}
	if there := remainingObjects(t, name); there["ClusterRole"] != 1 || there["FlowSchema"] != 1 {
		t.Errorf("it goes on without its rights: %v", there)
	}
	checkpoint := checkpointOf(t, name)
	patchPolicy(t, name, `{"spec":{"migration":{"maxWritesPerSecond":50}}}`)
	waitForJob(t, name, "being replaced", func(job *batchv1.Job) bool { return job.DeletionTimestamp != nil })
	collect(t, first)
	slower := waitForJob(t, name, "another one", goesOn)
	if spec := specOf(t, slower); slower.UID == first.UID || spec.MaxWritesPerSecond != 50 {
		t.Errorf("the specification of the Job is not slower: %+v", spec)
	}
	if again := checkpointOf(t, name); again.UID != checkpoint.UID || !cmp.Equal(again.Data, checkpoint.Data) {
		t.Error("the record was lost on the way")
	}

	record(t, name, complete)
	waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated)
	if stored := getCRD(t, name).Status.StoredVersions; !cmp.Equal(stored, []string{"v1"}) {
		t.Errorf("storedVersions is %v", stored)
	}
	checkRunEvents(t, name, v1alpha1.ReasonMigrationStarted, v1alpha1.ReasonMigrationSuspended, v1alpha1.ReasonMigrationResumed,
		v1alpha1.ReasonMigrationCompleted, v1alpha1.ReasonStoredVersionsPruned)
	expect.NoError(t, cluster.Delete(t.Context(), slower))
	collect(t, slower)
	checkIdle(t, name)
	if evidence := getPolicy(t, name).Status.MigrationEvidence; evidence == nil || evidence.Objects != 1000 {
		t.Errorf("without its Job, the evidence is %+v", evidence)
	}
}

// checkRunEvents expects exactly one event of each reason on the policy and on the
// CustomResourceDefinition.
func checkRunEvents(t *testing.T, name string, reasons ...string) {
	t.Helper()
	for _, kind := range []string{"ConversionPolicy", "CustomResourceDefinition"} {
		expect.Eventually(t, "one event of each on the "+kind, func() (bool, string) {
			list := &eventsv1.EventList{}
			expect.NoError(t, cluster.List(t.Context(), list))
			seen := map[string]int{}
			for _, event := range list.Items {
				if event.Regarding.Kind == kind && event.Regarding.Name == name && event.Action == "Migrate" {
					seen[event.Reason] += 1 + int(ptr.Deref(event.Series, eventsv1.EventSeries{}).Count)
				}
			}
			want := map[string]int{}
			for _, reason := range reasons {
				want[reason] = 1
			}
			diff := cmp.Diff(want, seen)
			return diff == "", diff
		})
	}
}

// TestMigrationPodDoesNotStart: the status reports what keeps the pod from starting.
func TestMigrationPodDoesNotStart(t *testing.T) {
	name := migrating(t, "pending.runs.example.com")
	job := waitForJob(t, name, "at work", goesOn)
	spec := job.Spec.Template.Spec.DeepCopy()
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: job.Name, Labels: job.Spec.Template.Labels}, Spec: *spec}
	expect.NoError(t, cluster.Create(t.Context(), pod))
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient memory."}}}
	expect.NoError(t, cluster.Status().Update(t.Context(), pod))
	condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrationPodPending)
	if !strings.Contains(condition.Message, "1 Insufficient memory.; nodes for it are chosen by spec.migration.workload") {
		t.Errorf("the message is %s", condition.Message)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "migrate", Image: "conversion-operator:test", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
	expect.NoError(t, cluster.Status().Update(t.Context(), pod))
	expect.Eventually(t, "the image is the cause", func() (bool, string) {
		condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrationPodPending)
		return strings.Contains(condition.Message, "the image conversion-operator:test cannot be pulled; add imagePullSecrets"), condition.Message
	})
	expect.NoError(t, cluster.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	expect.Eventually(t, "it is said no more", func() (bool, string) {
		waiting := getPolicy(t, name).Status.Migration.Waiting
		return waiting == "", waiting
	})
}

// TestAbandonedMigration: mode Never deletes the Job and its rights, and nothing is pruned.
func TestAbandonedMigration(t *testing.T) {
	name := migrating(t, "cancelled.runs.example.com")
	job := waitForJob(t, name, "at work", goesOn)
	record(t, name, half)
	patchPolicy(t, name, `{"spec":{"migration":{"mode":"Never"}}}`)
	collect(t, job)
	waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionUnknown, v1alpha1.ReasonNotRequested)
	checkRunEvents(t, name, v1alpha1.ReasonMigrationStarted, v1alpha1.ReasonMigrationCancelled)
	expect.Eventually(t, "its rights are gone", func() (bool, string) {
		left := remainingObjects(t, name)
		return left["ClusterRole"]+left["FlowSchema"]+left["ServiceAccount"] == 0, fmt.Sprint(left)
	})
	if status := getPolicy(t, name).Status; status.Migration.State != v1alpha1.MigrationCancelled || status.MigrationEvidence != nil {
		t.Errorf("the run is %s, the evidence %v", status.Migration.State, status.MigrationEvidence)
	}
	if stored := getCRD(t, name).Status.StoredVersions; len(stored) != 2 {
		t.Errorf("storedVersions is %v", stored)
	}
}

// TestTriggerDuringMigration: the next run waits for the current one to finish, and starts even if
// that failed.
func TestTriggerDuringMigration(t *testing.T) {
	name := migrating(t, "again.runs.example.com")
	first := waitForJob(t, name, "at work", goesOn)
	record(t, name, half)
	patchPolicy(t, name, `{"spec":{"migration":{"trigger":"second"}}}`)
	expect.Eventually(t, "it is said that the other one waits", func() (bool, string) {
		condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating)
		return strings.Contains(condition.Message, `another run for spec.migration.trigger "second"`), condition.Message
	})
	if job := waitForJob(t, name, "the same", goesOn); job.UID != first.UID {
		t.Error("the first run was given up")
	}
	record(t, name, failing)
	second := waitForJob(t, name, "the second", func(job *batchv1.Job) bool { return goesOn(job) && job.UID != first.UID })
	if spec := specOf(t, second); spec.RetryConfigMap != first.Name {
		t.Errorf("the second run has not the failed objects of the first: %+v", spec)
	}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(first), &corev1.ConfigMap{}))
	record(t, name, complete)
	waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated)
	collect(t, first)
	if run := getPolicy(t, name).Status.Migration; run.Trigger != "second" || second.Labels[names.RunLabel] != run.Run {
		t.Errorf("the latest run is %+v", run)
	}
}

// TestFailedMigration: the status says what to do, and nothing is pruned.
func TestFailedMigration(t *testing.T) {
	name := migrating(t, "failed.runs.example.com")
	waitForJob(t, name, "at work", goesOn)
	record(t, name, failing)
	condition := waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonObjectsFailed)
	for _, want := range []string{"1 of 1000", "default/bad", "denied the request", getPolicy(t, name).Status.Migration.Record.String(), "spec.migration.trigger"} {
		if !strings.Contains(condition.Message, want) {
			t.Errorf("the message lacks %q: %s", want, condition.Message)
		}
	}
	checkRunEvents(t, name, v1alpha1.ReasonMigrationStarted, v1alpha1.ReasonObjectsFailed)
	checkDescription(t, "failed-objects", name)
	if stored := getCRD(t, name).Status.StoredVersions; len(stored) != 2 {
		t.Errorf("storedVersions is %v", stored)
	}
}
