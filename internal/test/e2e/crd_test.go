//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// inGroup returns the CronTab of the hostPort story in another group, so that a test has its own
// CRD, and deletes it when the test ends.
func inGroup(t *testing.T, group string) scenarios.CronTab {
	t.Helper()
	crontab := scenarios.HostPort()
	t.Cleanup(func() { remove(t, "crontabs."+group) })
	inExample := crontab.Object
	crontab.Group = group
	crontab.Object = func(i int) *unstructuredObject {
		object := inExample(i)
		object.SetAPIVersion(group + "/" + crontab.Old)
		return object
	}
	return crontab
}

// remove deletes a CRD with its objects, which may need the converter, and then the policy.
func remove(t *testing.T, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it has ended
	for _, object := range []client.Object{
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		if err := client.IgnoreNotFound(cluster.Delete(ctx, object)); err != nil {
			t.Error(err)
		}
		expect.Eventually(t, fmt.Sprintf("%T %s is gone", object, name), func() (bool, string) {
			err := cluster.Get(ctx, client.ObjectKey{Name: name}, object)
			return apierrors.IsNotFound(err), fmt.Sprint(err, object.GetFinalizers())
		})
	}
}

// applySample applies a sample manifest in the CronTab's group.
func applySample(ctx context.Context, t *testing.T, crontab scenarios.CronTab, file string) {
	t.Helper()
	object := &unstructuredObject{}
	expect.NoError(t, yaml.Unmarshal([]byte(readSample(t, crontab, file)), object))
	if file == crontab.Policy {
		expect.NoError(t, unstructured.SetNestedMap(object.Object, map[string]any{}, "spec", "workload")) // pods of its own
	}
	err := cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("author"), client.ForceOwnership)
	expect.NoError(t, err)
}

// readSample reads a sample manifest, and replaces its group by the CronTab's.
func readSample(t *testing.T, crontab scenarios.CronTab, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(teller.Dir, crontab.Samples, file))
	expect.NoError(t, err)
	return strings.NewReplacer("crontabs.example.com", crontab.CRD(), "group: example.com", "group: "+crontab.Group,
		"apiVersion: example.com/", "apiVersion: "+crontab.Group+"/", "shortNames: [ct]", "").Replace(string(text))
}

// samplePolicy is the policy of a sample.
func samplePolicy(t *testing.T, crontab scenarios.CronTab) *v1alpha1.ConversionPolicy {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.Unmarshal([]byte(readSample(t, crontab, crontab.Policy)), policy))
	return policy
}

func getPolicy(ctx context.Context, t *testing.T, name string) *v1alpha1.ConversionPolicy {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Name: name}, policy))
	return policy
}

func getCRD(ctx context.Context, t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Name: name}, crd))
	return crd
}

// waitReady waits until the policy is Ready with a reason.
func waitReady(ctx context.Context, t *testing.T, name, reason string) {
	t.Helper()
	expect.Eventually(t, name+" is ready: "+reason, func() (bool, string) {
		policy := getPolicy(ctx, t, name)
		ready := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil {
			return false, "no condition"
		}
		return ready.Status == "True" && ready.Reason == reason, string(ready.Status) + " " + ready.Reason + ": " + ready.Message
	})
}
