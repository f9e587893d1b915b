// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrationtest has stored objects of a real API server, for tests of migrations.
package migrationtest

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// Group is the API group of all resources.
const Group = "migration.example.com"

// Resource is a CustomResourceDefinition with the versions v1beta1 and v1, and objects in the namespace
// default.
type Resource struct {
	*testenv.Server
	// CRD is the definition after the last change.
	CRD     *apiextensionsv1.CustomResourceDefinition
	Objects int

	fill func(i int, object *unstructured.Unstructured)
}

// New creates a resource whose objects, filled in by fill, are stored at v1beta1.
func New(t *testing.T, server *testenv.Server, plural string, objects int, fill func(i int, object *unstructured.Unstructured)) *Resource {
	t.Helper()
	r := &Resource{Server: server, CRD: definition(plural), Objects: objects, fill: fill}
	expect.NoError(t, server.Client.Create(t.Context(), r.CRD))
	expect.Success(t, plural+" are served", func(ctx context.Context) error { return server.Client.Create(ctx, r.Object("v1beta1", 0)) })
	var creates errgroup.Group
	creates.SetLimit(8)
	for i := 1; i < objects; i++ {
		creates.Go(func() error { return server.Client.Create(t.Context(), r.Object("v1beta1", i)) })
	}
	expect.NoError(t, creates.Wait())
	return r
}

func definition(plural string) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"host": {Type: "string"}}}
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}},
		}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: plural, ListKind: plural + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1", true), version("v1", false)},
		},
	}
}

// Plural is the name of the resource without its group.
func (r *Resource) Plural() string { return r.CRD.Spec.Names.Plural }

// ObjectName is the name of an object.
func ObjectName(i int) string { return fmt.Sprintf("object-%04d", i) }

// Object returns an object at a version.
func (r *Resource) Object(version string, i int) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: Group, Version: version, Kind: r.CRD.Spec.Names.Kind})
	object.SetNamespace(metav1.NamespaceDefault)
	object.SetName(ObjectName(i))
	r.fill(i, object)
	return object
}

// Definition reads the definition.
func (r *Resource) Definition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(r.CRD), crd))
	return crd
}

// Change changes the definition.
func (r *Resource) Change(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	crd := r.Definition(t)
	before := crd.DeepCopy()
	change(crd)
	expect.NoError(t, r.Client.Patch(t.Context(), crd, client.MergeFrom(before)))
	r.CRD = crd
}

// StoreV1 changes the storage version of a definition to v1.
func StoreV1(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
}

// Raw returns the objects in etcd.
func (r *Resource) Raw(t *testing.T) []etcd.Entry {
	t.Helper()
	entries, _, err := r.Etcd.List(t.Context(), path.Join("/registry", Group, r.Plural())+"/")
	expect.NoError(t, err)
	return entries
}

// Stored returns the number of objects in etcd by the version of their encoding.
func (r *Resource) Stored(t *testing.T) map[string]int {
	t.Helper()
	versions := map[string]int{}
	for _, object := range r.Raw(t) {
		var head metav1.TypeMeta
		expect.NoError(t, json.Unmarshal(object.Value, &head))
		versions[path.Base(head.APIVersion)]++
	}
	return versions
}

// WantStored expects these numbers of objects in etcd by the version of their encoding.
func (r *Resource) WantStored(t *testing.T, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, r.Stored(t)); diff != "" {
		t.Errorf("versions in etcd (-want +got):\n%s", diff)
	}
}

// RefuseUpdates makes the API server deny updates at a version, or at all versions if it is "*", of
// objects for which an expression in CEL is false, until the test ends. One of them is the object of the
// number.
func (r *Resource) RefuseUpdates(t *testing.T, version, expression string, refused int) {
	t.Helper()
	fail, exact, metadata := admissionv1.Fail, admissionv1.Exact, metav1.ObjectMeta{Name: r.CRD.Name + ".hold"}
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{Group}, APIVersions: []string{version}, Resources: []string{r.Plural()}},
	}
	expect.NoError(t, r.Client.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metadata, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    &fail,
		MatchConstraints: &admissionv1.MatchResources{MatchPolicy: &exact, ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
		Validations:      []admissionv1.Validation{{Expression: expression, Message: "this object is held back"}},
	}}))
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metadata, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: metadata.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	expect.NoError(t, r.Client.Create(t.Context(), binding))
	await := func(is bool) {
		expect.Eventually(t, fmt.Sprintf("the policy is enforced: %t", is), func() (bool, string) {
			held := r.Object(strings.Replace(version, "*", "v1", 1), refused)
			err := r.Client.Patch(context.WithoutCancel(t.Context()), held, client.RawPatch(types.MergePatchType, []byte("{}")), client.DryRunAll)
			return apierrors.IsInvalid(err) == is && (is || err == nil), fmt.Sprint(err)
		})
	}
	await(true)
	t.Cleanup(func() {
		expect.NoError(t, r.Client.Delete(context.WithoutCancel(t.Context()), binding))
		await(false)
	})
}
