//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestRetirement removes a version with stored objects, and checks the bytes in etcd on the way.
func TestRetirement(t *testing.T) {
	k := newKind(t, "whole.retired.example.com")
	for i := range 5 {
		expect.NoError(t, k.apply(t, "v1beta1", fmt.Sprintf("old-%d", i), "old-tool", map[string]any{"host": "a", "port": "80"}))
	}
	expect.NoError(t, k.apply(t, "v1beta1", "both", "old-tool", map[string]any{"host": "a"}))
	expect.NoError(t, k.apply(t, "v1", "both", "new-tool", map[string]any{"port": "80"}))
	k.nameRemovedVersion(t)
	k.follow(t, "storageVersion: v1, migration: {mode: Automatic}, retirement: [{version: v1beta1, action: Remove}]")

	k.checkPromoted(t)
	k.checkDeprecated(t)
	k.checkUnserved(t)
	k.checkRemoved(t)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, k.name)))
	waitUntilGone(t, k.name)
}

// nameRemovedVersion creates an object that also names a version which its author removes before
// the policy is created. Before Kubernetes 1.37 the next write drops all managedFields of such an
// object (kubernetes#111937), so nothing is left to clear.
func (k *kind) nameRemovedVersion(t *testing.T) {
	t.Helper()
	if !testenv.AtLeast(t, direct, "v1.37") {
		return
	}
	also := *k.version(t, "v1beta1")
	also.Name, also.Storage = "v1alpha1", false
	changeCRD(t, k.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = append(crd.Spec.Versions, also)
	})
	expect.Eventually(t, "an object is applied at v1alpha1", func() (bool, string) {
		err := k.apply(t, "v1alpha1", "old-0", "oldest-tool", map[string]any{"host": "a"})
		return err == nil, fmt.Sprint(err)
	})
	changeCRD(t, k.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = crd.Spec.Versions[:len(crd.Spec.Versions)-1]
	})
	expect.Eventually(t, "v1alpha1 is gone", func() (bool, string) {
		_, err := k.at("v1alpha1").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

func (k *kind) checkPromoted(t *testing.T) {
	t.Helper()
	expect.Eventually(t, "v1 is the storage version", func() (bool, string) {
		return crds.StorageVersion(getCRD(t, k.name)) == "v1", "v1beta1"
	})
	expect.Equal(t, "objects that etcd has at v1beta1 before the migration", 6, k.stored(t)["v1beta1"])
	expect.Eventually(t, "v1beta1 may not go while objects are stored in it", func() (bool, string) {
		is := k.status(t, "v1beta1")
		return len(is.BlockedBy) > 0 && is.BlockedBy[0].Reason == v1alpha1.BlockedStored && !is.SafeToUnserve, fmt.Sprintf("%+v", is)
	})
	k.migrate(t, "v1")
	waitFor(t, k.name, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated)
	expect.Equal(t, "objects in etcd after the migration", map[string]int{"v1": 6}, k.stored(t))
}

// checkDeprecated: clients get a warning, and their requests keep the version served.
func (k *kind) checkDeprecated(t *testing.T) {
	t.Helper()
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, v1alpha1.ReasonRequested)
	version := k.version(t, "v1beta1")
	if !version.Deprecated || !strings.Contains(*version.DeprecationWarning, "use "+k.group+"/v1 CronTab") {
		t.Errorf("v1beta1 is deprecated %t: %s", version.Deprecated, *version.DeprecationWarning)
	}
	backdate(t, k.name, func(record *v1alpha1.RetirementStatus, past metav1.Time) { record.DeprecatedTime = &past })
	if is := k.status(t, "v1beta1"); is.Requested != v1alpha1.RequestedYes || is.LastRequested == nil || is.SafeToUnserve || !k.version(t, "v1beta1").Served {
		t.Errorf("six objects were written at v1beta1, and it is %+v", is)
	}
	waitFor(t, k.name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	k.checkIdle(t)
}

func (k *kind) checkUnserved(t *testing.T) {
	t.Helper()
	backdate(t, k.name, func(record *v1alpha1.RetirementStatus, past metav1.Time) { record.LastRequested = &past })
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, v1alpha1.ReasonSoaking)
	expect.Eventually(t, "v1beta1 is not served", func() (bool, string) {
		_, err := k.at("v1beta1").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	expect.NoError(t, k.apply(t, "v1", "both", "new-tool", map[string]any{"port": "81"}))
	expect.Equal(t, "objects that name v1beta1, of which none is to be cleared while it soaks,", 6, len(k.namedBy(t, "v1beta1")))
	k.checkIdle(t)
}

// checkRemoved: no object names the version, every object can be applied, and the data in etcd is
// unchanged.
func (k *kind) checkRemoved(t *testing.T) {
	t.Helper()
	backdate(t, k.name, func(record *v1alpha1.RetirementStatus, past metav1.Time) { record.UnservedTime = &past })
	expect.Eventually(t, "v1beta1 is removed", func() (bool, string) {
		left, _ := crds.Version(getCRD(t, k.name), "v1beta1")
		return left == nil, fmt.Sprint(getPolicy(t, k.name).Status.Conditions)
	})
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionTrue, v1alpha1.ReasonRetired)
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		expect.Equal(t, "objects that still name "+version, "[]", fmt.Sprint(k.namedBy(t, version)))
	}
	k.checkApplies(t)
	expect.Equal(t, "objects in etcd in the end", map[string]int{"v1": 6}, k.stored(t))
	expect.Eventually(t, "the right to patch objects is gone", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKey{Name: names.CleanRights(k.name)}, &rbacv1.ClusterRole{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// checkApplies: a client that applied at the old version can apply at the new one, and remove the
// fields that it owns.
func (k *kind) checkApplies(t *testing.T) {
	t.Helper()
	expect.Eventually(t, "objects can be applied", func() (bool, string) {
		err := k.apply(t, "v1", "old-0", "old-tool", map[string]any{"host": "b", "port": "80"})
		return err == nil, fmt.Sprint(err)
	})
	expect.NoError(t, k.apply(t, "v1", "both", "new-tool", map[string]any{"port": "82"}))
	expect.NoError(t, k.apply(t, "v1", "old-0", "old-tool", map[string]any{"host": "b"}))
	object, err := k.at("v1").Get(t.Context(), "old-0", metav1.GetOptions{})
	expect.NoError(t, err)
	if _, left := object.Object["port"]; left || object.Object["host"] != "b" {
		t.Errorf("port could not be removed: %v", object.Object)
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == "before-first-apply" {
			t.Errorf("a manager that no one is owns fields: %v", entry)
		}
	}
}

// TestRequestsAreCounted reads requests of a deprecated version from a real API server.
func TestRequestsAreCounted(t *testing.T) {
	k := newKind(t, "counted.retired.example.com")
	look := func() observed.BackgroundCheck {
		metrics := newRequestMetricsReader(direct, time.Now)
		return metrics.requests(t.Context(), step.ReadRequests{Group: k.group, Resource: "crontabs"})
	}
	before := look()
	if before.Requests == nil || before.Requests.Missed != "" || len(before.Requests.Servers) != 1 || before.Requests.Servers[0].Counts["v1beta1"] != 0 {
		t.Fatalf("before any client asked: %+v", before)
	}
	_, err := k.at("v1beta1").List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	expect.Eventually(t, "the request is counted", func() (bool, string) {
		after := look()
		if after.Requests == nil || len(after.Requests.Servers) != 1 {
			return false, fmt.Sprintf("%+v", after)
		}
		server := after.Requests.Servers[0]
		return server.Started == before.Requests.Servers[0].Started && server.Counts["v1beta1"] == 1, fmt.Sprintf("%+v", after.Requests)
	})
}

// TestRequestTimeoutOfServer reads the flag of a real API server, if its Kubernetes serves flags.
func TestRequestTimeoutOfServer(t *testing.T) {
	var want time.Duration
	if testenv.AtLeast(t, direct, "v1.36") {
		want = time.Minute
	}
	got, err := NewRequestTimeout(direct, time.Now).read(t.Context())
	if got != want || (err == nil) != (want > 0) {
		t.Errorf("the request timeout is %s, want %s: %v", got, want, err)
	}
}

// stores waits until the rulesets that pods mount are right.
func stores(t *testing.T, policy string, right func([]string) bool) {
	t.Helper()
	expect.Eventually(t, "pods mount the right rulesets", func() (bool, string) {
		configMap := &corev1.ConfigMap{}
		expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Rulesets(policy)}, configMap))
		var hashes []string
		for key := range configMap.BinaryData {
			hash, _ := conversion.StoredHash(key)
			hashes = append(hashes, hash)
		}
		return right(hashes), strings.Join(hashes, " and ")
	})
}
