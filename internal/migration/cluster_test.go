// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/tracing"
)

const (
	testGroup = "migration.example.com"
	// propagationDelay covers the time in which an API server still encodes at the old version
	// although it shows the new one.
	propagationDelay = 2 * time.Second
)

// cluster is a real API server and its etcd.
type cluster struct {
	config *rest.Config
	client client.Client
	etcd   etcd.Client

	server  *envtest.APIServer
	etcdURL *url.URL
}

// resource is a CustomResourceDefinition whose objects are stored at v1beta1, and whose storage
// version is now v1.
type resource struct {
	*cluster
	plural  string
	objects int
	// pin is the definition after the change of the storage version.
	pin contract.Pin
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	// The API server must answer at the address that it advertises.
	started := testenv.For(t, testenv.Options{Arguments: map[string]string{"bind-address": "0.0.0.0"}})
	return &cluster{config: started.Kubeconfig, client: started.Client, etcd: started.Etcd,
		server: started.ControlPlane.GetAPIServer(), etcdURL: started.ControlPlane.Etcd.URL}
}

func (c *cluster) newResource(t *testing.T, plural string, objects int) *resource {
	t.Helper()
	r := c.newStored(t, plural, objects)
	r.flip(t)
	return r
}

// newStored creates a resource whose storage version is still v1beta1.
func (c *cluster) newStored(t *testing.T, plural string, objects int) *resource {
	t.Helper()
	r := &resource{cluster: c, plural: plural, objects: objects}
	crd := r.definition()
	expect.NoError(t, c.client.Create(t.Context(), crd))
	waitFor(t, "the resource is served", func(ctx context.Context) (bool, error) {
		err := c.client.List(ctx, r.list("v1beta1"))
		return err == nil, nil
	})
	r.createObjects(t)
	return r
}

// flip changes the storage version to v1.
func (r *resource) flip(t *testing.T) {
	t.Helper()
	crd := r.definition()
	expect.NoError(t, r.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	before := crd.DeepCopy()
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
	expect.NoError(t, r.client.Patch(t.Context(), crd, client.MergeFrom(before)))
	r.pin = contract.Pin{Name: crd.Name, UID: crd.UID, Generation: crd.Generation}
}

func (r *resource) definition() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"host": {Type: "string"}}},
				},
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: r.plural + "." + testGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: testGroup,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: r.plural, Kind: r.plural, ListKind: r.plural + "List"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1beta1", true), version("v1", false),
			},
		},
	}
}

func (r *resource) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: testGroup, Version: "v1", Resource: r.plural}
}

func objectName(i int) string { return fmt.Sprintf("object-%04d", i) }

func (r *resource) list(version string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: testGroup, Version: version, Kind: r.plural + "List"})
	return list
}

func (r *resource) object(version string, i int) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"host": host}}}
	object.SetAnnotations(map[string]string{conversion.AnnotationName(r.plural+"."+testGroup, "v1alpha1"): `{"format":2,"fields":{"/spec/note":"` + preservedValue + `"}}`})
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: testGroup, Version: version, Kind: r.plural})
	object.SetNamespace("default")
	object.SetName(objectName(i))
	return object
}

func (r *resource) createObjects(t *testing.T) {
	t.Helper()
	workers, ctx := errgroup.WithContext(t.Context())
	workers.SetLimit(8)
	for i := range r.objects {
		workers.Go(func() error { return r.client.Create(ctx, r.object("v1beta1", i)) })
	}
	expect.NoError(t, workers.Wait())
}

// engine returns the engine of the Job, with the rights of the Job. The checkpoint of the run is
// kept.
func (r *resource) engine(t *testing.T, run string) *Engine {
	t.Helper()
	checkpoint := types.NamespacedName{Namespace: "default", Name: r.plural + "-" + run}
	r.grant(t, checkpoint)
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:default:" + checkpoint.Name,
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	engine, err := NewEngine(t.Context(), config, r.spec(run), tracing.Tracer{}, NewMetrics(r.pin.Name, "test"))
	expect.NoError(t, err)
	return engine
}

func (r *resource) spec(run string) *contract.Spec {
	return &contract.Spec{
		FormatVersion: contract.SpecFormat, Run: run, Resource: metav1.GroupVersionResource(r.resource()), Pin: r.pin,
		Namespace: "default", RecordConfigMap: r.plural + "-" + run, PropagationDelay: metav1.Duration{Duration: propagationDelay},
		Concurrency: contract.DefaultConcurrency, PageSize: contract.DefaultPageSize, Preflight: contract.DefaultPreflight,
		Pace: v1alpha1.MigrationGentle, Verify: v1alpha1.MigrationVerifyFull,
	}
}

// grant creates the checkpoint and the rights of the Job, unless they exist, and waits until they apply.
func (r *resource) grant(t *testing.T, checkpoint types.NamespacedName) {
	t.Helper()
	metadata := metav1.ObjectMeta{Namespace: checkpoint.Namespace, Name: checkpoint.Name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: checkpoint.Namespace, Name: checkpoint.Name}}
	servers := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: checkpoint.Name + "-servers"}
	leases := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: checkpoint.Name + "-servers"}
	bind := func(role metav1.ObjectMeta) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: role, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}
	}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: checkpoint.Name}
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metadata},
		&rbacv1.Role{ObjectMeta: metadata, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{checkpoint.Name}, Verbs: []string{"get", "patch"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metadata, Subjects: subjects, RoleRef: ref("Role")},
		&rbacv1.Role{ObjectMeta: servers, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
		}},
		bind(servers),
		&rbacv1.Role{ObjectMeta: leases, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}},
		}},
		bind(leases),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: checkpoint.Name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{testGroup}, Resources: []string{r.plural, r.plural + "/status"}, Verbs: []string{"list", "patch"}},
			{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Resource}, ResourceNames: []string{r.pin.Name}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: checkpoint.Name}, Subjects: subjects, RoleRef: ref("ClusterRole")},
	} {
		if err := r.client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, may := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "configmaps", Namespace: checkpoint.Namespace, Name: checkpoint.Name},
		{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: servers.Namespace},
		{Verb: "list", Group: "coordination.k8s.io", Resource: "leases", Namespace: leases.Namespace},
		{Verb: "get", Group: definitions.Group, Resource: definitions.Resource, Name: r.pin.Name},
	} {
		waitFor(t, checkpoint.Name+" may "+may.Verb+" "+may.Resource, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + checkpoint.Namespace + ":" + checkpoint.Name, ResourceAttributes: &may}}
			err := r.client.Create(ctx, review)
			return review.Status.Allowed, err
		})
	}
}

// refuseUpdates makes the API server deny every update of one object at a version, or at all
// versions if it is "*".
func (r *resource) refuseUpdates(t *testing.T, name, version string) {
	t.Helper()
	metadata := metav1.ObjectMeta{Name: r.plural + ".hold"}
	expect.NoError(t, r.client.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metadata,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{MatchPolicy: ptr.To(admissionv1.Exact), ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{testGroup}, APIVersions: []string{version}, Resources: []string{r.plural}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", name), Message: "this object is held back"}},
		},
	}))
	expect.NoError(t, r.client.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metadata,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: metadata.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}))
	at := version
	if at == "*" {
		at = "v1"
	}
	waitFor(t, "the policy is enforced", func(ctx context.Context) (bool, error) {
		held := r.object(at, 0)
		held.SetName(name)
		err := r.client.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte("{}")), client.DryRunAll)
		return apierrors.IsInvalid(err), nil
	})
}

// stored returns the number of objects in etcd by the version of their encoding.
func (r *resource) stored(t *testing.T) map[string]int {
	t.Helper()
	versions := map[string]int{}
	for _, object := range r.raw(t) {
		var head metav1.TypeMeta
		expect.NoError(t, json.Unmarshal(object.Value, &head))
		versions[path.Base(head.APIVersion)]++
	}
	return versions
}

// revision returns the revision of the last write to any object.
func (r *resource) revision(t *testing.T) int64 {
	t.Helper()
	var last int64
	for _, object := range r.raw(t) {
		last = max(last, object.ModRevision)
	}
	return last
}

// revisions returns the revision of the last write to each object.
func (r *resource) revisions(t *testing.T) map[string]int64 {
	t.Helper()
	revisions := map[string]int64{}
	for _, object := range r.raw(t) {
		revisions[path.Base(string(object.Key))] = object.ModRevision
	}
	return revisions
}

// raw returns the objects in etcd.
func (r *resource) raw(t *testing.T) []etcd.Entry {
	t.Helper()
	entries, _, err := r.etcd.List(t.Context(), path.Join("/registry", testGroup, r.plural)+"/")
	expect.NoError(t, err)
	return entries
}

// compact removes all earlier revisions from etcd.
func (r *resource) compact(t *testing.T) {
	t.Helper()
	_, revision, err := r.etcd.List(t.Context(), path.Join("/registry", testGroup, r.plural)+"/")
	expect.NoError(t, err)
	err = r.etcd.Compact(t.Context(), revision)
	if err != nil && !strings.Contains(err.Error(), "has been compacted") { // nothing was written since
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := poll(t.Context(), condition); err != nil {
		t.Fatalf("waited for: %s: %v", what, err)
	}
}

func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, expect.Patience, true, condition)
}
