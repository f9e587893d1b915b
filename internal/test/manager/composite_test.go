//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// xrds is a kind like Crossplane's, with the fields of an XRD that matter here.
const xrds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: compositeresourcedefinitions.apiextensions.crossplane.io}
spec:
  group: apiextensions.crossplane.io
  scope: Cluster
  names: {plural: compositeresourcedefinitions, singular: compositeresourcedefinition, kind: CompositeResourceDefinition, listKind: CompositeResourceDefinitionList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// TestComposite: the conversion of a CustomResourceDefinition that Crossplane generates is written to its
// CompositeResourceDefinition, and removed there. Nothing is written while that has claims, whose
// CustomResourceDefinition would convert through the same converter. The test acts as Crossplane; make
// crossplane does without.
func TestComposite(t *testing.T) {
	const group, name = "composite.example.com", "crontabs.composite.example.com"
	t.Parallel()
	install(t, "components/crossplane/rights.yaml", "components/crossplane/confinement.yaml")
	create(t, xrds, &apiextensionsv1.CustomResourceDefinition{})
	xrd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"group": group, "claimNames": map[string]any{"plural": "claims", "kind": "Claim"}}}}
	expect.Eventually(t, "the XRD is created", func() (bool, string) {
		err := cluster.Create(t.Context(), xrd)
		return err == nil, fmt.Sprint(err)
	})
	define(t, group, "v1", "v1beta1")
	crd := getCRD(t, name)
	before := client.MergeFrom(crd.DeepCopy())
	crd.OwnerReferences = []metav1.OwnerReference{{APIVersion: xrd.GetAPIVersion(), Kind: xrd.GetKind(), Name: name, UID: xrd.GetUID(), Controller: new(true)}}
	expect.NoError(t, cluster.Patch(t.Context(), crd, before))
	createPolicy(t, group, shared)
	forecast := checkClaims(t, xrd)
	copied := copyConversion(t, xrd, func(conversion *apiextensionsv1.CustomResourceConversion) bool { return conversion != nil })
	expect.Equal(t, "strategy of the XRD", apiextensionsv1.WebhookConverter, crds.Strategy(copied))
	waitFor(t, name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	if writer := getPolicy(t, name).Status.CRD.Writer; !strings.HasPrefix(writer, crds.Crossplane+" ") {
		t.Errorf("status.crd.writer is %s", writer)
	}
	checkIdle(t, name)
	forecast.check(t)

	expect.NoError(t, cluster.Patch(t.Context(), getCRD(t, name), client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/spec/versions/1"}]`))))
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, name)))
	copyConversion(t, xrd, func(conversion *apiextensionsv1.CustomResourceConversion) bool { return conversion == nil })
	waitUntilNothingIsLeft(t, name)
}

// checkClaims waits until the policy stops because of the claims of the XRD, as plan says, too. It removes the claims,
// and returns the forecast of what follows.
func checkClaims(t *testing.T, xrd *unstructured.Unstructured) forecasted {
	t.Helper()
	name := xrd.GetName()
	waitFor(t, name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonCompositeNotUsable, []string{name + " has claimNames, for claims."})
	foreseen, is := foresee(t, name, nil).report.End, getPolicy(t, name)
	expect.Equal(t, "end that plan foresees", v1alpha1.ReasonCompositeNotUsable+": "+apimeta.FindStatusCondition(is.Status.Conditions, foreseen.Condition).Message, foreseen.Reason+": "+foreseen.Message)
	checkIdle(t, name)
	expect.Equal(t, "strategy", apiextensionsv1.NoneConverter, crds.Strategy(getCRD(t, name)))
	expect.Equal(t, "active revisions", 0, len(is.Status.ActiveRevisions))
	before := xrd.GetGeneration()
	expect.NoError(t, cluster.Patch(t.Context(), xrd, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"claimNames":null}}`))))
	expect.Equal(t, "the only write to the XRD is this", before+1, xrd.GetGeneration())
	forecast := foresee(t, name, nil)
	patch(t, is, `{"metadata":{"annotations":{"claims":"removed"}}}`)
	return forecast
}

// copyConversion waits for a conversion of the XRD, and copies it to the CustomResourceDefinition, as
// Crossplane does. It returns the latter.
func copyConversion(t *testing.T, xrd *unstructured.Unstructured, wanted func(*apiextensionsv1.CustomResourceConversion) bool) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	read := &crds.Composite{}
	expect.Eventually(t, "the XRD is written", func() (bool, string) {
		expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(xrd), xrd))
		*read = crds.Composite{}
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(xrd.Object, read))
		return wanted(read.Spec.Conversion), fmt.Sprint(getPolicy(t, xrd.GetName()).Status.Conditions)
	})
	crd := getCRD(t, xrd.GetName())
	before := client.MergeFrom(crd.DeepCopy())
	crd.Spec.Conversion = cmp.Or(read.Spec.Conversion, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	expect.NoError(t, cluster.Patch(t.Context(), crd, before, client.FieldOwner("crossplane")))
	return crd
}
