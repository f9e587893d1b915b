//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// kind is a kind of two versions with the same fields, so that its objects need no converter.
// v1beta1 is the storage version.
type kind struct {
	group, name string
	objects     dynamic.Interface
}

func newKind(t *testing.T, group string) *kind {
	t.Helper()
	text := strings.ReplaceAll(manifest(group, "v1", "v1beta1"), "{hostPort: {type: string}", "{host: {type: string}, port: {type: string}")
	create(t, text, &apiextensionsv1.CustomResourceDefinition{})
	objects, err := dynamic.NewForConfig(direct)
	expect.NoError(t, err)
	k := &kind{group: group, name: "crontabs." + group, objects: objects}
	expect.Eventually(t, "objects can be created", func() (bool, string) {
		_, err := k.at("v1").List(t.Context(), metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return k
}

func (k *kind) at(version string) dynamic.ResourceInterface {
	return k.objects.Resource(schema.GroupVersionResource{Group: k.group, Version: version, Resource: "crontabs"}).Namespace("default")
}

// apply applies one object server-side.
func (k *kind) apply(t *testing.T, version, name, manager string, fields map[string]any) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(k.group + "/" + version)
	object.SetKind("CronTab")
	object.SetName(name)
	_, err := k.at(version).Apply(t.Context(), name, object, metav1.ApplyOptions{FieldManager: manager})
	return err
}

// stored counts the stored objects by version, from the bytes in etcd.
func (k *kind) stored(t *testing.T) map[string]int {
	t.Helper()
	entries, _, err := storage.List(t.Context(), "/registry/"+k.group+"/crontabs/")
	expect.NoError(t, err)
	versions := map[string]int{}
	for _, entry := range entries {
		object := struct{ APIVersion string }{}
		expect.NoError(t, json.Unmarshal(entry.Value, &object))
		versions[strings.TrimPrefix(object.APIVersion, k.group+"/")]++
	}
	return versions
}

// migrate does the work of the current migration Job: it rewrites every object, and writes the
// record.
func (k *kind) migrate(t *testing.T, version string) {
	t.Helper()
	var job batchv1.Job
	expect.Eventually(t, "the Job of the run is there", func() (bool, string) {
		jobs := k.collect(t)
		run := getPolicy(t, k.name).Status.Migration
		at := slices.IndexFunc(jobs.Items, func(job batchv1.Job) bool {
			return run != nil && run.State == v1alpha1.MigrationRunning && job.Labels[names.RunLabel] == run.Run
		})
		if at >= 0 {
			job = jobs.Items[at]
		}
		return at >= 0, fmt.Sprintf("%d Jobs, run %+v", len(jobs.Items), run)
	})
	list, err := k.at(version).List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	for _, object := range list.Items {
		_, err := k.at(version).Patch(t.Context(), object.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		expect.NoError(t, err)
	}
	k.record(t, &job, int64(len(list.Items)))
}

// collect does the work of the garbage collector for deleted Jobs, and returns all Jobs.
func (k *kind) collect(t *testing.T) *batchv1.JobList {
	t.Helper()
	jobs := &batchv1.JobList{}
	expect.NoError(t, cluster.List(t.Context(), jobs, client.InNamespace(system), childrenNamed(k.name)))
	for i := range jobs.Items {
		if !jobs.Items[i].DeletionTimestamp.IsZero() {
			expect.NoError(t, client.IgnoreNotFound(cluster.Patch(t.Context(), &jobs.Items[i], dropFinalizers)))
		}
	}
	return jobs
}

func (k *kind) record(t *testing.T, job *batchv1.Job, objects int64) {
	t.Helper()
	crd, now := getCRD(t, k.name), metav1.Now()
	text, err := json.Marshal(contract.Record{
		Format: contract.RecordFormat, Run: job.Labels[names.RunLabel], CRDUID: crd.UID, CRDGeneration: crd.Generation, State: contract.StateCompleted,
		Barrier: "1", StartTime: &now, CompletionTime: &now, Counters: contract.Counters{Total: objects, Rewritten: objects},
	})
	expect.NoError(t, err)
	checkpoint := &corev1.ConfigMap{}
	expect.Eventually(t, "the run's ConfigMap is written", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(job), checkpoint)
		if err == nil {
			checkpoint.Data = map[string]string{contract.RecordKey: string(text)}
			err = cluster.Update(t.Context(), checkpoint)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// follow creates a policy for the kind.
func (k *kind) follow(t *testing.T, spec string) {
	t.Helper()
	create(t, "metadata: {name: "+k.name+"}\nspec: {converter: {none: {}}, "+spec+"}", &v1alpha1.ConversionPolicy{})
}

// backdate moves the times in the status of a retirement into the past.
func backdate(t *testing.T, policy string, change func(*v1alpha1.RetirementStatus, metav1.Time)) {
	t.Helper()
	expect.Eventually(t, "the status is written", func() (bool, string) {
		current := getPolicy(t, policy)
		if len(current.Status.Retirement) == 0 {
			return false, "nothing is remembered"
		}
		change(&current.Status.Retirement[0], metav1.NewTime(time.Now().Add(-30*24*time.Hour)).Rfc3339Copy())
		err := cluster.Status().Update(t.Context(), current)
		return err == nil, fmt.Sprint(err)
	})
}

// checkIdle: reconciliations cause no writes.
func (k *kind) checkIdle(t *testing.T) {
	t.Helper()
	checkNoWrites(t, k.name, func(int) {
		crd := getCRD(t, k.name)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, crd.ResourceVersion)
		expect.NoError(t, cluster.Patch(t.Context(), crd, client.RawPatch(mergePatch, []byte(patch))))
	})
}

func (k *kind) version(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	version, _ := crds.Version(getCRD(t, k.name), name)
	return version
}

// status returns the status of a version.
func (k *kind) status(t *testing.T, name string) v1alpha1.VersionStatus {
	t.Helper()
	for _, version := range getPolicy(t, k.name).Status.Versions {
		if version.Name == name {
			return version
		}
	}
	return v1alpha1.VersionStatus{}
}

// namedBy returns the objects that name a version in managedFields.
func (k *kind) namedBy(t *testing.T, version string) []string {
	t.Helper()
	list, err := k.at("v1").List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	var all []string
	for _, object := range list.Items {
		for _, entry := range object.GetManagedFields() {
			if entry.APIVersion == k.group+"/"+version {
				all = append(all, object.GetName())
			}
		}
	}
	return all
}
