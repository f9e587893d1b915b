//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestRetirement removes a version with stored objects, and checks the bytes in etcd on the way.
func TestRetirement(t *testing.T) {
	t.Parallel()
	k := newKind(t, "whole.retired.example.com")
	for i := range 5 {
		k.apply(t, "v1beta1", fmt.Sprintf("old-%d", i), "old-tool", map[string]any{"host": "a", "port": "80"})
	}
	k.apply(t, "v1beta1", "both", "old-tool", map[string]any{"host": "a"})
	k.apply(t, "v1", "both", "new-tool", map[string]any{"port": "80"})
	k.nameRemovedVersion(t)
	k.follow(t, "storageVersion: v1, migration: {mode: Automatic, suspend: true}, retirement: [{version: v1beta1, action: Remove}]")

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
	if !testenv.AtLeast(t, server.Kubeconfig, "v1.37") {
		return
	}
	also := *k.version(t, "v1beta1")
	also.Name, also.Storage = "v1alpha1", false
	changeCRD(t, k.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = append(crd.Spec.Versions, also)
	})
	k.apply(t, "v1alpha1", "old-0", "oldest-tool", map[string]any{"host": "a"})
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
	patch(t, getPolicy(t, k.name), `{"spec":{"migration":{"suspend":false}}}`)
	waitFor(t, k.name, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated, nil)
	expect.Equal(t, "objects in etcd after the migration", map[string]int{"v1": 6}, k.stored(t))
}

// checkDeprecated: clients get a warning, and their requests keep the version served.
func (k *kind) checkDeprecated(t *testing.T) {
	t.Helper()
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, v1alpha1.ReasonSoaking, []string{"a client requested v1beta1 recently"})
	version := k.version(t, "v1beta1")
	if !version.Deprecated || !strings.Contains(*version.DeprecationWarning, "use "+k.group+"/v1 CronTab") {
		t.Errorf("v1beta1 is deprecated %t: %s", version.Deprecated, *version.DeprecationWarning)
	}
	backdate(t, k.name, func(record *v1alpha1.RetirementStatus, past metav1.Time) { record.DeprecatedTime = &past })
	if is := k.status(t, "v1beta1"); is.Requested != v1alpha1.RequestedYes || is.SafeToUnserve || !k.version(t, "v1beta1").Served {
		t.Errorf("six objects were written at v1beta1, and it is %+v", is)
	}
	waitFor(t, k.name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, nil)
	checkIdle(t, k.name)
}

func (k *kind) checkUnserved(t *testing.T) {
	t.Helper()
	backdate(t, k.name, func(record *v1alpha1.RetirementStatus, past metav1.Time) { record.LastRequested = &past })
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, v1alpha1.ReasonSoaking, nil)
	expect.Eventually(t, "v1beta1 is not served", func() (bool, string) {
		_, err := k.at("v1beta1").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	k.apply(t, "v1", "both", "new-tool", map[string]any{"port": "81"})
	expect.Equal(t, "objects that name v1beta1, of which none is to be cleared while it soaks,", 6, len(k.namedBy(t, "v1beta1")))
	checkIdle(t, k.name)
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
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionTrue, v1alpha1.ReasonRetired, nil)
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		expect.Equal(t, "objects that still name "+version, "[]", fmt.Sprint(k.namedBy(t, version)))
	}
	k.checkApplies(t)
	expect.Equal(t, "objects in etcd in the end", map[string]int{"v1": 6}, k.stored(t))
	waitGone(t, names.CleanRights(k.name), &rbacv1.ClusterRole{})
}

// checkApplies: a client that applied at the old version can apply at the new one, and remove the
// fields that it owns.
func (k *kind) checkApplies(t *testing.T) {
	t.Helper()
	k.apply(t, "v1", "old-0", "old-tool", map[string]any{"host": "b", "port": "80"})
	k.apply(t, "v1", "both", "new-tool", map[string]any{"port": "82"})
	k.apply(t, "v1", "old-0", "old-tool", map[string]any{"host": "b"})
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
	t.Parallel()
	for name, requests := range map[string]int64{"never": 0, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := manifest(t, name+".counted.example.com", "v1", "v1beta1")
			crd.Spec.Versions[1].Schema, crd.Spec.Versions[1].Deprecated = crd.Spec.Versions[0].Schema, true
			k := kindOf(t, crd)
			for range requests {
				_, err := k.at("v1beta1").List(t.Context(), metav1.ListOptions{})
				expect.NoError(t, err)
			}
			k.follow(t, "retirement: [{version: v1beta1, action: Deprecate}]")
			expect.Eventually(t, "the requests are counted", func() (bool, string) {
				records := getPolicy(t, k.name).Status.Retirement
				return len(records) == 1 && slices.Equal(slices.Collect(maps.Values(records[0].Requests)), []int64{requests}), fmt.Sprintf("%+v", records)
			})
		})
	}
}

// requestTimeout is that of the API server; its default would not tell a delay from the least one.
const requestTimeout = 90 * time.Second

// TestRequestTimeoutOfServer reads the flag of a real API server, if its Kubernetes serves flags.
func TestRequestTimeoutOfServer(t *testing.T) {
	t.Parallel()
	want := observed.DefaultPropagationDelay
	if testenv.AtLeast(t, server.Kubeconfig, "v1.36") {
		want = 2 * requestTimeout
	}
	timeout := controllers.NewRequestTimeout(manager.config, time.Now)
	timeout.Read(t.Context())
	expect.Equal(t, "propagation delay", want, timeout.PropagationDelay())
}
