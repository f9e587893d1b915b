// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// generatedByCrossplane: Crossplane writes the CustomResourceDefinition from an XRD.
func generatedByCrossplane(w *world) {
	generated := func(text string) {
		w.applyCRD(text)
		w.observed.CRD.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apiextensions.crossplane.io/v1",
			Kind: "CompositeResourceDefinition", Name: crontabs, UID: "uid-of-the-xrd", Controller: new(true)}}
	}
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.say("Crossplane generates the CustomResourceDefinition, and the operator has no rights to the XRD.")
	generated(bothStoredOld)
	w.observed.CompositeProblem = observed.CompositeProblem{Reason: v1alpha1.ReasonRightsNotGranted, Message: "no rights"}
	w.converge()
	w.say("The XRD is gone.")
	w.observed.CompositeProblem = observed.CompositeProblem{Reason: v1alpha1.ReasonCompositeNotFound, Message: "no XRD"}
	w.converge()
	w.say("It is back, and has claims.")
	w.observed.CompositeProblem = observed.CompositeProblem{}
	w.observed.Composite = &crds.Composite{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: crontabs, UID: "uid-of-the-xrd"}, Spec: crds.CompositeSpec{Group: "example.com"}}
	claims := w.observed.Composite.Spec
	read(w.t, "{group: example.com, claimNames: {plural: claims}}", &claims)
	w.observed.Composite.Spec = claims
	w.converge()
	w.say("This is the CustomResourceDefinition of the claims.")
	w.observed.CRD.OwnerReferences[0].Name = "xcrontabs.example.com"
	w.converge()
	w.observed.CRD.OwnerReferences[0].Name = crontabs
	w.say("It has no claims, and an injector is to write caBundle.")
	w.observed.Composite.Spec.ClaimNames = nil
	w.observed.Policy.Spec.Certificates.Injected = &v1alpha1.InjectedCertificates{SecretName: "theirs"}
	w.converge()
	w.observed.Policy.Spec.Certificates.Injected = nil
	w.say("No injector, and another client wrote a webhook to it.")
	w.writeXRD("kubectl", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter})
	w.converge()
	w.say("It has no webhook. Crossplane does not run.")
	w.writeXRD("kubectl", nil)
	w.converge()
	w.say("Crossplane continues.")
	w.copy()
	w.converge()
	w.say("A Configuration package replaces the XRD without its conversion.")
	w.observed.Composite.OwnerReferences = []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ConfigurationRevision", Name: "platform", Controller: new(true)}}
	w.writeXRD("crossplane", nil)
	w.copy()
	w.converge()
	w.copy()
	w.converge()
	w.say("It does that all the time.")
	for range 6 {
		w.writeXRD("crossplane", nil)
		w.copy()
		w.converge()
		w.copy()
		w.converge()
	}
	w.say("It has spec.conversion now, and a client changes that of the CustomResourceDefinition, which Crossplane reverts.")
	w.observed.Policy.Generation++
	w.converge()
	w.copy()
	w.converge()
	w.loseConversion("kubectl")
	w.copy()
	w.converge()
	w.say("The policy wants another storage version.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.converge()
	w.say("Its author makes that version referenceable.")
	generated(bothStoredNew)
	w.converge()
	w.say("A migration is asked for.")
	w.trigger("now")
	w.reports(whole())
	w.say("The previous version is retired.")
	w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementRemove, After: &metav1.Duration{}}}
	w.converge()
	w.say("Its author removes it, and deletes the policy. Crossplane does not run.")
	generated(onlyNew)
	w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
	w.converge()
	w.say("Crossplane continues.")
	w.copy()
	w.converge()
	w.settleAPIServers()
}

// ofClaims is a world whose policy is for claims. It neither changes nor removes the conversion, which belongs
// to the policy of the composite resources, although its pods are in a fleet that both may use.
func ofClaims(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.observed.CRD.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apiextensions.crossplane.io/v1",
		Kind: "CompositeResourceDefinition", Name: "xcrontabs.example.com", UID: "uid-of-the-xrd", Controller: new(true)}}
	w.observed.Composite = &crds.Composite{ObjectMeta: metav1.ObjectMeta{Name: "xcrontabs.example.com"}}
	w.writeXRD(names.ManagedBy, w.observed.CRD.Spec.Conversion)
	w.observed.Policy.Status.ActivatedCRD, w.observed.Policy.Status.ActiveRevisions = "", nil
	return w
}

// writeXRD lets a field manager write spec.conversion of the XRD.
func (w *world) writeXRD(manager string, conversion *apiextensionsv1.CustomResourceConversion) {
	w.t.Helper()
	owned := map[string]any{}
	for path := range w.fields(conversion) {
		fields := owned
		for name := range strings.SplitSeq(path, "/") {
			if fields["f:"+name] == nil {
				fields["f:"+name] = map[string]any{}
			}
			fields = fields["f:"+name].(map[string]any)
		}
	}
	text, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:conversion": owned}})
	if err != nil {
		w.t.Fatal(err)
	}
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == names.ManagedBy {
		operation = metav1.ManagedFieldsOperationApply
	}
	w.observed.Composite.Spec.Conversion = conversion
	w.observed.Composite.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(string(text))}}
}

// copy does what Crossplane does in each reconciliation.
func (w *world) copy() {
	w.t.Helper()
	conversion := w.observed.Composite.Spec.Conversion
	if conversion == nil {
		conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	w.write("crossplane", conversion.DeepCopy())
}
