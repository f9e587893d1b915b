//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package arming

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// TestRetirement takes an old version out of use, by the rights that the operator
// is installed with and through a converter: what was applied at the old version
// can be applied at the new one in the end.
func TestRetirement(t *testing.T) {
	t.Parallel()
	const group, name = "whole.retirement.example.com", "crontabs.whole.retirement.example.com"
	define(t, group, "v1beta1")
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.StorageVersion, policy.Spec.Migration.Mode = "v1", v1alpha1.MigrationAutomatic
		policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementRemove, After: &metav1.Duration{}}}
	})
	pod := startConverter(t, name, behaviour{}, behaviour{})
	waitReady(t, name, v1alpha1.ReasonArmedAhead)
	must(t, applyCronTab(t, group, "v1beta1", "applied", "hostPort: 'a.example.com:1'\nreplicas: 2"))
	createCronTab(t, group, "v1beta1", "created", "b.example.com:2")
	serve(t, group, "v1beta1", "v1")

	eventually(t, "v1 is the storage version, once conversion is proven", func() (bool, string) {
		pod.roll(t)
		crd := getCRD(t, name)
		if crds.StorageVersion(crd) == "v1" && crd.Spec.Conversion.Webhook == nil {
			t.Fatal("v1 is the storage version before anything converts")
		}
		return crds.StorageVersion(crd) == "v1", fmt.Sprint(getPolicy(t, name).Status.Conditions)
	})
	checkReads(t, group, "applied", "a.example.com", "1")
	migrate(t, group, name)
	eventually(t, "v1beta1 is removed", func() (bool, string) {
		return len(getCRD(t, name).Spec.Versions) == 1, fmt.Sprint(getPolicy(t, name).Status.Conditions)
	})
	waitReadyThrough(t, pod)
	eventually(t, "what was applied at v1beta1 is applied at v1", func() (bool, string) {
		err := applyCronTab(t, group, "v1", "applied", "host: c.example.com\nport: '3'")
		return err == nil, fmt.Sprint(err)
	})
	object, err := read(t, group, "v1", "applied")
	must(t, err)
	if got := fmt.Sprintf("%v:%v", object["host"], object["port"]); got != "c.example.com:3" {
		t.Errorf("host and port are %s", got)
	}
	must(t, cluster.Delete(t.Context(), getPolicy(t, name)))
	eventually(t, "the policy may go, and nothing is left of it", func() (bool, string) {
		left := &v1alpha1.ConversionPolicy{}
		err := cluster.Get(t.Context(), client.ObjectKey{Name: name}, left)
		return apierrors.IsNotFound(err), fmt.Sprint(err, left.Status.Conditions)
	})
}

func applyCronTab(t *testing.T, group, version, name, fields string) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(fmt.Appendf(nil, "apiVersion: %s/%s\nkind: CronTab\nmetadata: {name: %s, namespace: default}\n%s\n", group, version, name, fields), object))
	return cluster.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("tool"))
}

// migrate plays the pod of the migration Job: it rewrites every object, and
// records that.
func migrate(t *testing.T, group, name string) {
	t.Helper()
	var job batchv1.Job
	eventually(t, "a migration is to run", func() (bool, string) {
		jobs := &batchv1.JobList{}
		must(t, cluster.List(t.Context(), jobs, client.InNamespace(system), client.MatchingLabels{plan.InstanceLabel: plan.ChildName(name)}))
		run := getPolicy(t, name).Status.Migration
		at := slices.IndexFunc(jobs.Items, func(job batchv1.Job) bool {
			return run != nil && run.State == v1alpha1.MigrationRunning && run.StorageVersion == "v1" && job.Labels[plan.RunLabel] == run.Run
		})
		if at >= 0 {
			job = jobs.Items[at]
		}
		return at >= 0, fmt.Sprintf("%d Jobs, %+v", len(jobs.Items), run)
	})
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": group + "/v1", "kind": "CronTabList"}}
	must(t, cluster.List(t.Context(), list))
	for i := range list.Items {
		patch(t, &list.Items[i], "{}")
	}
	crd, now := getCRD(t, name), metav1.Now()
	text, err := json.Marshal(contract.Record{
		Format: 1, Run: job.Labels[plan.RunLabel], CRDUID: crd.UID, CRDGeneration: crd.Generation, State: contract.StateCompleted,
		Barrier: "1", StartTime: &now, CompletionTime: &now, Ruleset: getPolicy(t, name).Status.Migration.Ruleset,
		Counters: contract.Counters{Total: int64(len(list.Items)), Rewritten: int64(len(list.Items))},
	})
	must(t, err)
	checkpoint := &corev1.ConfigMap{}
	must(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(&job), checkpoint))
	patch(t, checkpoint, fmt.Sprintf(`{"data":{%q:%q}}`, contract.RecordKey, strings.TrimSpace(string(text))))
}
