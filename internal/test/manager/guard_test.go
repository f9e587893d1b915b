//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestGuard runs the manager with the policies that protect spec.conversion; internal/test/install shows which
// writes they refuse or keep out. What the guard decides by, and the manager's own writes, do not depend on
// field managers, which other clients can set or clear, and the manager owns spec.conversion again afterwards.
// The test is not parallel, as others change spec.conversion.
func TestGuard(t *testing.T) {
	active := activate(t, "guard.drift.example.com", shared)
	defer install(t, "guard/conversion.yaml")()
	protected := func(answer string, is func(error, *apiextensionsv1.CustomResourceDefinition) bool) {
		t.Helper()
		expect.Eventually(t, "strategy None is "+answer, func() (bool, string) {
			crd := getCRD(t, active.Name)
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			err := cluster.Update(t.Context(), crd, client.DryRunAll)
			return is(err, crd), fmt.Sprint(err)
		})
	}
	refused := func(err error, _ *apiextensionsv1.CustomResourceDefinition) bool { return apierrors.IsForbidden(err) }
	protected("refused", refused)
	patch := []byte(`[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	if err := cluster.Patch(t.Context(), active.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(names.ManagedBy)); !apierrors.IsForbidden(err) {
		t.Errorf("by the operator's field manager the write is not refused: %v", err)
	}
	answer, is := "refused", refused
	if testenv.AtLeast(t, server.Kubeconfig, "v1.36") {
		defer install(t, "components/keep-conversion/policy.yaml")()
		answer, is = "not written", func(err error, crd *apiextensionsv1.CustomResourceDefinition) bool {
			return err == nil && cmp.Equal(active.Spec.Conversion, crd.Spec.Conversion)
		}
		protected(answer, is)
	}
	strip := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	expect.NoError(t, cluster.Patch(t.Context(), active.DeepCopy(), client.RawPatch(types.JSONPatchType, strip)))
	protected(answer, is)
	expect.Eventually(t, "the operator owns spec.conversion again", func() (bool, string) {
		crd := getCRD(t, active.Name)
		return crds.ConversionIsBy(crd, crd.Spec.Conversion, names.ManagedBy), fmt.Sprint(crd.ManagedFields)
	})
	checkIdle(t, active.Name)
	if drift := getPolicy(t, active.Name).Status.Drift; drift == nil || drift.CRDGeneration != active.Generation || drift.Answer != v1alpha1.DriftKept {
		t.Errorf("status.drift is %+v, want that spec.conversion was kept", drift)
	}
	checkOperatorIsRecognized(t, active)
	checkGuardAllowsOperator(t, active)
}

// checkOperatorIsRecognized: an operator that was installed again under another name replaces the
// name in the status, and can then write spec.conversion.
func checkOperatorIsRecognized(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	patchStatus(t, getPolicy(t, active.Name), `{"status":{"operatorUsername":"system:serviceaccount:elsewhere:conversion-operator"}}`)
	patch(t, getPolicy(t, active.Name), `{"metadata":{"annotations":{"example.com/reconcile":"now"}}}`)
	expect.Eventually(t, "the status names the operator", func() (bool, string) {
		name := getPolicy(t, active.Name).Status.OperatorUsername
		return name == operator, name
	})
}

// checkGuardAllowsOperator: the operator can change and restore the conversion.
func checkGuardAllowsOperator(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	changeCRD(t, active.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[:1] })
	expect.Eventually(t, "the new ruleset is in the path", func() (bool, string) {
		path := *getCRD(t, active.Name).Spec.Conversion.Webhook.ClientConfig.Service.Path
		return path != *active.Spec.Conversion.Webhook.ClientConfig.Service.Path, path
	})
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	waitUntilGone(t, active.Name)
	left := getCRD(t, active.Name)
	expect.Equal(t, "strategy, once the operator has let go,", apiextensionsv1.NoneConverter, left.Spec.Conversion.Strategy)
}

// TestUninstallGuard: the objects that converters need cannot be deleted while a converter is
// needed. The test is not parallel, as others delete these.
func TestUninstallGuard(t *testing.T) {
	active := activate(t, "uninstall.drift.example.com", shared)
	remove := install(t, "components/uninstall-guard/uninstall.yaml")
	needed := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "conversionpolicies.conversion-operator.io"}},
	}
	for _, object := range needed {
		expect.Eventually(t, "the deletion is refused", func() (bool, string) {
			err := cluster.Delete(t.Context(), object, client.DryRunAll)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "Delete the ConversionPolicies first"), fmt.Sprint(err)
		})
	}
	expect.NoError(t, cluster.Delete(t.Context(), active, client.DryRunAll))
	another := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "not-" + system}}
	expect.NoError(t, cluster.Create(t.Context(), another))
	expect.NoError(t, cluster.Delete(t.Context(), another, client.DryRunAll))
	remove()
	expect.Eventually(t, "the deletion is accepted", func() (bool, string) {
		err := cluster.Delete(t.Context(), needed[1], client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
}
