//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"strconv"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
)

// TestEtcdRestored: etcd goes back to a snapshot without a new revision, while the manager runs, whose caches are then
// newer than etcd. The manager changes no CRD by what it remembers, and ends. The next one continues from what the
// snapshot has: with the rules of then, without a policy that was created afterwards, and with one that was deleted
// with its CRD. The test stops the API server, so it is not parallel.
func TestEtcdRestored(t *testing.T) {
	release.Only(t, "TestRestored")
	const changed, created, deleted = "changed.restored.example.com", "created.restored.example.com", "deleted.restored.example.com"
	begin := func(groups ...string) {
		for _, group := range groups {
			define(t, group, "v1", "v1beta1")
			createPolicy(t, group, nil)
		}
		for _, group := range groups {
			waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
			createCronTab(t, group, "v1", "old", "a.example.com:1")
		}
	}
	begin(changed, deleted)
	before := map[string]*apiextensionsv1.CustomResourceDefinition{changed: getCRD(t, "crontabs."+changed), deleted: getCRD(t, "crontabs."+deleted)}
	restore := server.Checkpoint(t)
	awaitAPIServer(t)

	patch(t, getPolicy(t, "crontabs."+changed), `{"spec":{"converter":{"declarative":{"spokes":[{"version":"v1beta1","rules":[{"format":{"from":".hostPort","template":"{host}/{port}","to":{"host":".host","port":".port"}}}]}]}}}}`)
	expect.Eventually(t, "the CRD names the new rules", func() (bool, string) {
		path := conversionPath(getCRD(t, "crontabs."+changed))
		return path != conversionPath(before[changed]), path
	})
	waitReady(t, "crontabs."+changed, v1alpha1.ReasonSucceeded)
	createCronTab(t, changed, "v1beta1", "new", "b.example.com/2")
	begin(created)
	lose(t, "crontabs."+deleted)

	// What the snapshot lacks is more than what clients write until the manager notices.
	for n := range 1000 {
		expect.NoError(t, storage.Put(t.Context(), "/other", strconv.Itoa(n)))
	}
	restore()
	awaitAPIServer(t)
	awaitRestart(t, "etcd went back from revision")
	end := time.Now().Add(5 * proofLifetime)
	expect.Eventually(t, "the manager has tested its pods several times", func() (bool, string) {
		for group, then := range before {
			expect.Equal(t, group+": the conversion by memory", conversionPath(then), conversionPath(getCRD(t, "crontabs."+group)))
		}
		return time.Now().After(end), "not yet"
	})
	waitReady(t, "crontabs."+changed, v1alpha1.ReasonSucceeded)
	waitReady(t, "crontabs."+deleted, v1alpha1.ReasonSucceeded)
	for group, then := range before {
		expect.Equal(t, group+": the conversion", conversionPath(then), conversionPath(getCRD(t, "crontabs."+group)))
		checkReads(t, group, "old", "a.example.com", "1")
		checkAtRest(t, "crontabs."+group)
	}
	for _, gone := range []client.Object{&v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}} {
		if err := cluster.Get(t.Context(), client.ObjectKey{Name: "crontabs." + created}, gone); !apierrors.IsNotFound(err) {
			t.Errorf("%T, which the snapshot lacks: %v", gone, err)
		}
	}
}

// conversionPath names the ruleset that a CRD converts with.
func conversionPath(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil || crd.Spec.Conversion.Webhook.ClientConfig.Service == nil {
		return ""
	}
	return *crd.Spec.Conversion.Webhook.ClientConfig.Service.Path
}

// awaitAPIServer waits until the API server answers again.
func awaitAPIServer(t *testing.T) {
	t.Helper()
	expect.Success(t, "the API server answers", func(ctx context.Context) error {
		return cluster.List(ctx, &v1alpha1.ConversionPolicyList{})
	})
}
