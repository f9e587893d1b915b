//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRestored restores a policy without a status, and a CRD that names its converter, as a tool does
// that backs up objects: first the CRD, then Secrets and ConfigMaps of the operator's namespace if it
// has them, and policies after that. Objects can be read again at every version, and a migration
// that would prove nothing is not started.
func TestRestored(t *testing.T) {
	t.Parallel()
	for name, withNamespace := range map[string]bool{"restored with the namespace": true, "restored without the namespace": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := dns(name) + ".example.com"
			policy := "crontabs." + group
			define(t, group, "v1", "v1beta1")
			createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic })
			waitReady(t, policy, v1alpha1.ReasonSucceeded)
			saved := save(t, policy)
			lose(t, policy)

			restore(t, saved.crd)
			awaitServed(t, group)
			createCronTab(t, group, "v1", "before", "a.example.com:1")
			_, err := read(t, group, "v1beta1", "before")
			expect.Contains(t, "the answer without a converter", fmt.Sprint(err), "conversion webhook")
			if withNamespace {
				restore(t, saved.children...)
			}
			restore(t, saved.policy)
			waitReady(t, policy, v1alpha1.ReasonSucceeded)
			checkReads(t, group, "before", "a.example.com", "1")
			expect.Equal(t, "status.migration", nil, getPolicy(t, policy).Status.Migration)
			checkAtRest(t, policy)
		})
	}
}

// TestOldObjectsAfterTheConverter restores objects of an old backup into a new cluster, in which another
// version is the storage version: the one that is created before the converter loses what only its version
// has, and the one that is created after it is complete.
func TestOldObjectsAfterTheConverter(t *testing.T) {
	t.Parallel()
	const group = "from-a-backup.example.com"
	define(t, group, "v1", "v1beta1")
	createCronTab(t, group, "v1beta1", "too-early", "a.example.com:1")
	createPolicy(t, group, nil)
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
	createCronTab(t, group, "v1beta1", "in-time", "a.example.com:1")
	checkReads(t, group, "in-time", "a.example.com", "1")
	early, err := read(t, group, "v1", "too-early")
	expect.NoError(t, err)
	if early["host"] != nil || early["replicas"] == nil {
		t.Errorf("the object that was created before the converter is %v", early)
	}
}

// TestObjectsOlderThanTheDefinition removes a CRD without its objects, and creates it again: it has
// never changed, and yet objects may be stored in any version.
func TestObjectsOlderThanTheDefinition(t *testing.T) {
	t.Parallel()
	const group = "outlived.example.com"
	const policy = "crontabs." + group
	define(t, group, "v1", "v1beta1")
	createCronTab(t, group, "v1", "old", "a.example.com:1")
	<-time.After(time.Second) // managedFields record seconds
	expect.NoError(t, storage.Delete(t.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/"+policy))
	waitGone(t, policy, &apiextensionsv1.CustomResourceDefinition{})

	define(t, group, "v1", "v1beta1")
	createPolicy(t, group, nil)
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	expect.Eventually(t, "the old object is found, and there is no migration evidence", func() (bool, string) {
		status := getPolicy(t, policy).Status
		window := status.UnconvertedWindow
		return window != nil && window.OlderObjects == 1 && status.MigrationEvidence == nil, fmt.Sprintf("window %+v, evidence %+v", window, status.MigrationEvidence)
	})
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionUnknown, v1alpha1.ReasonStoredVersionsUntrusted, nil)
}

// backup has the objects that belong to a policy.
type backup struct {
	policy   *v1alpha1.ConversionPolicy
	crd      *apiextensionsv1.CustomResourceDefinition
	children []client.Object
}

func save(t *testing.T, policy string) backup {
	t.Helper()
	saved := backup{policy: getPolicy(t, policy), crd: getCRD(t, policy)}
	saved.policy.Status = v1alpha1.ConversionPolicyStatus{}
	saved.crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	for list, least := range map[client.ObjectList]int{&corev1.SecretList{}: 2, &corev1.ConfigMapList{}: 1} {
		expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child(policy)}))
		if count := apimeta.LenList(list); count < least {
			t.Fatalf("the %T of %s has %d objects", list, policy, count)
		}
		expect.NoError(t, apimeta.EachListItem(list, func(item runtime.Object) error {
			saved.children = append(saved.children, item.(client.Object)) //nolint:forcetypeassert // an item is an object
			return nil
		}))
	}
	return saved
}

// lose deletes policy and CRD, and waits until the manager has deleted what belonged to them.
func lose(t *testing.T, policy string) {
	t.Helper()
	// In the other order, the manager might add its finalizer again in between.
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, policy)))
	patch(t, getPolicy(t, policy), `{"metadata":{"finalizers":null}}`)
	expect.NoError(t, cluster.Delete(t.Context(), getCRD(t, policy)))
	waitUntilGone(t, policy)
	waitGone(t, policy, &apiextensionsv1.CustomResourceDefinition{})
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
		expect.Eventually(t, fmt.Sprintf("the %T of %s is empty", list, policy), func() (bool, string) {
			err := cluster.List(t.Context(), list, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child(policy)})
			return err == nil && apimeta.LenList(list) == 0, fmt.Sprint(apimeta.LenList(list), err)
		})
	}
}

// restore creates objects again, as another field manager, and leaves those that exist: a reconciliation that began
// before the loss may have written a child again.
func restore[O client.Object](t *testing.T, objects ...O) {
	t.Helper()
	for _, object := range objects {
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetGeneration(0)
		object.SetCreationTimestamp(metav1.Time{})
		object.SetManagedFields(nil)
		if err := cluster.Create(t.Context(), object, client.FieldOwner("velero-server")); !apierrors.IsAlreadyExists(err) {
			expect.NoError(t, err)
		}
	}
}

// awaitServed waits until the API server serves the kind.
func awaitServed(t *testing.T, group string) {
	t.Helper()
	expect.Eventually(t, group+" is established", func() (bool, string) {
		return crds.Condition(getCRD(t, "crontabs."+group), apiextensionsv1.Established), "not yet"
	})
}
