//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestGuard: the ValidatingAdmissionPolicy refuses writes that would be drift, and no others, and
// none of the operator.
func TestGuard(t *testing.T) {
	active := activate(t, "guard.drift.example.com", unchanged)
	unguarded := create(t, manifest("unguarded.drift.example.com", "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	remove := installPolicies(t, "guard/conversion.yaml")
	defer func() {
		remove()
		waitForDryRun(t, active.Name, true)
	}()
	waitForDryRun(t, active.Name, false)

	for name, c := range foreign {
		t.Run("refused: "+name, func(t *testing.T) {
			err := writeCRD(t, active.Name, c.write)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "delete the ConversionPolicy first") {
				t.Errorf("the write is not refused with what to do: %v", err)
			}
		})
	}
	for name, write := range harmless {
		t.Run("accepted: "+name, func(t *testing.T) { expect.NoError(t, writeCRD(t, active.Name, write)) })
	}
	checkConversionMayChange(t, unguarded.Name, active.Spec.Conversion)
	checkGuardIgnoresFieldManagers(t, active)
	checkGuardIgnoresReportMode(t, active)
	checkGuardAllowsOperator(t, active)
}

// TestKeptConversion: with the mutating policy, no foreign write changes spec.conversion, and the
// guard admits all of them. The operator names the writer, and can change the conversion itself.
func TestKeptConversion(t *testing.T) {
	testenv.NeedMutatingPolicies(t, direct)
	active := activate(t, "kept.drift.example.com", unchanged)
	for _, file := range []string{"guard/conversion.yaml", "components/keep-conversion/policy.yaml"} {
		defer installPolicies(t, file)()
	}
	waitForKept(t, active)
	for name, c := range foreign {
		t.Run(name, func(t *testing.T) {
			expect.NoError(t, writeCRD(t, active.Name, c.write))
			checkKept(t, active)
		})
	}
	for name, write := range impossible {
		t.Run(name+" of strategy None", func(t *testing.T) {
			expect.NoError(t, writeCRD(t, active.Name, write))
			checkKept(t, active)
		})
	}
	checkIdle(t, active.Name)
	if drift := getPolicy(t, active.Name).Status.Drift; drift == nil || drift.CRDGeneration != active.Generation || len(drift.Repairs) != 1 {
		t.Errorf("status.drift is %+v, want one repair, of metadata.managedFields", drift)
	}
	checkOperatorIsRecognized(t, active)
	checkGuardAllowsOperator(t, active)
}

// checkOperatorIsRecognized: an operator that was installed again under another name replaces the
// name in the status, and can then write spec.conversion.
func checkOperatorIsRecognized(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	previous := client.RawPatch(mergePatch, []byte(`{"status":{"operatorUsername":"system:serviceaccount:elsewhere:conversion-operator"}}`))
	expect.NoError(t, cluster.Status().Patch(t.Context(), getPolicy(t, active.Name), previous))
	patchPolicy(t, active.Name, `{"metadata":{"annotations":{"example.com/reconcile":"now"}}}`)
	expect.Eventually(t, "the status names the operator", func() (bool, string) {
		name := getPolicy(t, active.Name).Status.OperatorUsername
		return name == managerConfig(direct).Impersonate.UserName, name
	})
}

// waitForKept waits until the API server keeps spec.conversion.
func waitForKept(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	expect.Eventually(t, "strategy None is not written", func() (bool, string) {
		crd := getCRD(t, active.Name)
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		err := cluster.Update(t.Context(), crd, client.DryRunAll)
		return err == nil && cmp.Equal(active.Spec.Conversion, crd.Spec.Conversion), fmt.Sprint(err)
	})
}

func checkKept(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	after := getCRD(t, active.Name)
	if diff := cmp.Diff(active.Spec.Conversion, after.Spec.Conversion); diff != "" {
		t.Errorf("spec.conversion (-before +after):\n%s", diff)
	}
	if after.Generation != active.Generation {
		t.Errorf("generation %d, want %d", after.Generation, active.Generation)
	}
}

// checkGuardIgnoresFieldManagers: the guard also refuses writes with the operator's field manager, and
// after metadata.managedFields was cleared.
func checkGuardIgnoresFieldManagers(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	patch := []byte(`[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	err := cluster.Patch(t.Context(), active.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), fieldOwner)
	if !apierrors.IsForbidden(err) {
		t.Errorf("by the operator's field manager the write is not refused: %v", err)
	}
	strip := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	expect.NoError(t, cluster.Patch(t.Context(), active.DeepCopy(), client.RawPatch(types.JSONPatchType, strip)))
	waitForDryRun(t, active.Name, false)
	expect.Eventually(t, "the operator owns spec.conversion again", func() (bool, string) {
		crd := getCRD(t, active.Name)
		return crds.ConversionIsBy(crd, names.ManagedBy), fmt.Sprint(crd.ManagedFields)
	})
}

// checkGuardIgnoresReportMode: a policy in mode Report is not guarded.
func checkGuardIgnoresReportMode(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	patchPolicy(t, active.Name, `{"spec":{"drift":"Report"}}`)
	waitForDryRun(t, active.Name, true)
	patchPolicy(t, active.Name, `{"spec":{"drift":"Repair"}}`)
	waitForDryRun(t, active.Name, false)
}

// checkGuardAllowsOperator: the operator can change and restore the conversion.
func checkGuardAllowsOperator(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	changeCRD(t, active.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	expect.Eventually(t, "the new ruleset is in the path", func() (bool, string) {
		path := *getCRD(t, active.Name).Spec.Conversion.Webhook.ClientConfig.Service.Path
		return path != *active.Spec.Conversion.Webhook.ClientConfig.Service.Path, path
	})
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	expect.Eventually(t, "the policy is gone", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKey{Name: active.Name}, &v1alpha1.ConversionPolicy{})
		return apierrors.IsNotFound(err), "still there"
	})
	left := getCRD(t, active.Name)
	if left.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Fatalf("the operator has not let go: %+v", left.Spec.Conversion)
	}
	checkConversionMayChange(t, active.Name, active.Spec.Conversion)
}

func checkConversionMayChange(t *testing.T, name string, conversion *apiextensionsv1.CustomResourceConversion) {
	t.Helper()
	expect.NoError(t, writeCRD(t, name, func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) error {
		t.Helper()
		crd.Spec.Conversion = conversion
		return cluster.Update(t.Context(), crd, client.DryRunAll)
	}))
}

// installPolicies installs the admission policies in a file of config, and returns a function that
// removes them.
func installPolicies(t *testing.T, file string) func() {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "config", file))
	expect.NoError(t, err)
	var installed []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		unmarshal(t, document, &object.Object)
		expect.NoError(t, cluster.Create(t.Context(), object))
		installed = append(installed, object)
	}
	return func() {
		for _, object := range slices.Backward(installed) {
			expect.NoError(t, cluster.Delete(t.Context(), object))
		}
	}
}

// TestUninstallGuard: the objects that converters need cannot be deleted while a converter is
// needed.
func TestUninstallGuard(t *testing.T) {
	active := activate(t, "uninstall.drift.example.com", unchanged)
	remove := installPolicies(t, "components/uninstall-guard/uninstall.yaml")
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

// waitForDryRun waits until the API server enforces the guard, or no longer does.
func waitForDryRun(t *testing.T, name string, accepted bool) {
	t.Helper()
	expect.Eventually(t, "the guard is in force, or is not", func() (bool, string) {
		crd := getCRD(t, name)
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		err := cluster.Update(t.Context(), crd, client.DryRunAll)
		return accepted && err == nil || !accepted && apierrors.IsForbidden(err), fmt.Sprint(err)
	})
}
