//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestAnswers makes requests fail in every way, and compares the answers with the committed ones of
// this version of Kubernetes. Each case has a resource of its own, named after it.
func TestAnswers(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	arguments := testenv.ServiceCalls()
	server := testenv.For(t, testenv.Options{NoWatchCache: true, Arguments: arguments})
	r := &recorder{Server: server, cases: recorded{}}
	resources := map[string]func(*testing.T, *recorder, string){}
	maps.Copy(resources, converters)
	maps.Copy(resources, admissions)
	maps.Copy(resources, plain)
	r.install(t, resources)
	gate := newGate(t, r.ControlPlane.Etcd.URL.Host)
	var behind *rest.Config
	var playing sync.WaitGroup
	playing.Go(func() { behind = r.startBehind(t, gate) })
	for name, play := range resources {
		playing.Go(func() { play(t, r, name) })
	}
	playing.Wait()
	if behind == nil {
		t.FailNow()
	}
	r.recordStorage(t, behind, gate)
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	expect.NoError(t, encoder.Encode(r.cases))
	golden.Check(t, text.String(), testenv.Minor(t, r.Kubeconfig)+".json")
}

// recorder collects answers.
type recorder struct {
	*testenv.Server
	mu    sync.Mutex
	cases recorded
}

// install creates the resources and an object of each, stored at v1beta1. Then v1 is the storage
// version.
func (r *recorder) install(t *testing.T, resources map[string]func(*testing.T, *recorder, string)) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for name := range resources {
		group.Go(func() error {
			crd := definition(name)
			if err := r.Client.Create(ctx, crd); err != nil {
				return err
			}
			expect.Success(t, "an object of "+name+" is created", func(ctx context.Context) error {
				_, err := r.at(t, name, "v1beta1", r.Kubeconfig).Create(ctx, object(name), metav1.CreateOptions{})
				return err
			})
			return r.change(ctx, name, `[{"op": "replace", "path": "/spec/versions/0/storage", "value": false}, {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]`)
		})
	}
	expect.NoError(t, group.Wait())
}

func definition(name string) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true)}}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name + "." + Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: Group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: name, Kind: name, ListKind: name + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1", true), version("v1", false)}},
	}
}

func object(resource string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": Group + "/v1beta1", "kind": resource,
		"metadata": map[string]any{"name": Object}, "host": "a"}}
}

// change patches the definition of a resource.
func (r *recorder) change(ctx context.Context, resource, patch string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource + "." + Group}}
	return r.Client.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(patch)))
}

func (r *recorder) at(t *testing.T, resource, version string, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	objects, err := dynamic.NewForConfig(config)
	expect.NoError(t, err)
	return objects.Resource(schema.GroupVersionResource{Group: Group, Version: version, Resource: resource}).Namespace(metav1.NamespaceDefault)
}

// patch sends the patch of a migration.
func (r *recorder) patch(t *testing.T, resource, body string, options metav1.PatchOptions) error {
	t.Helper()
	_, err := r.at(t, resource, "v1", r.Kubeconfig).Patch(t.Context(), Object, types.MergePatchType, []byte(body), options)
	return err
}

var dryRun = []string{metav1.DryRunAll}

// record records an answer.
func (r *recorder) record(t *testing.T, name, request string, err error) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Errorf("%s: %s was answered with %v", name, request, err)
		return
	}
	text, marshalErr := json.Marshal(status.Status())
	expect.NoError(t, marshalErr)
	recorded := metav1.Status{}
	expect.NoError(t, json.Unmarshal([]byte(stable(string(text))), &recorded))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cases[name] == nil {
		r.cases[name] = map[string]metav1.Status{}
	}
	r.cases[name][request] = recorded
}

// varying are the parts of answers that differ between runs.
var varying = []struct {
	text    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(127\.0\.0\.1|10\.0\.0\.[0-9]+):[0-9]+`), "$1:8443"},
	{regexp.MustCompile(`10\.0\.0\.[0-9]+:`), "10.0.0.1:"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`), "2026-01-01T00:00:00Z"},
	{regexp.MustCompile(`net/http: request canceled \(Client\.Timeout exceeded while awaiting headers\)`), "context deadline exceeded"},
	{regexp.MustCompile(` \(Client\.Timeout exceeded while awaiting headers\)`), ""},
	{regexp.MustCompile(`revision=[0-9]+`), "revision=1"},
	{regexp.MustCompile(`larger than max \([0-9]+ `), "larger than max (2100000 "},
}

func stable(text string) string {
	for _, part := range varying {
		text = part.text.ReplaceAllString(text, part.instead)
	}
	return text
}

// failing waits until a dry run of a patch fails, and records the answers to these requests.
func (r *recorder) failing(t *testing.T, resource string, because *regexp.Regexp, requests ...string) {
	t.Helper()
	var err error
	expect.Eventually(t, fmt.Sprintf("%s fails with %v", resource, because), func() (bool, string) {
		err = r.patch(t, resource, "{}", metav1.PatchOptions{DryRun: dryRun})
		return err != nil && because.MatchString(err.Error()), fmt.Sprint(err)
	})
	r.record(t, resource, Patch, err)
	var waiting sync.WaitGroup // for those that hang
	for _, request := range requests {
		waiting.Go(func() {
			var err error
			switch request {
			case Create:
				_, err = r.at(t, resource, "v1beta1", r.Kubeconfig).Create(t.Context(), named(object(resource), "new"), metav1.CreateOptions{DryRun: dryRun})
			case List:
				_, err = r.at(t, resource, "v1", r.Kubeconfig).List(t.Context(), metav1.ListOptions{})
			}
			r.record(t, resource, request, err)
		})
	}
	waiting.Wait()
}

func named(object *unstructured.Unstructured, name string) *unstructured.Unstructured {
	object.SetName(name)
	return object
}

// plain are cases without a webhook and without a policy.
var plain = map[string]func(*testing.T, *recorder, string){
	"schema-refuses": func(t *testing.T, r *recorder, name string) {
		expect.NoError(t, r.change(t.Context(), name, `[{"op": "add", "path": "/spec/versions/1/schema/openAPIV3Schema/required", "value": ["port"]}]`))
		r.failing(t, name, regexp.MustCompile("port"))
	},
	"without-the-right": func(t *testing.T, r *recorder, name string) {
		anyone := rest.CopyConfig(r.Kubeconfig)
		anyone.Impersonate = rest.ImpersonationConfig{UserName: "anyone"}
		_, err := r.at(t, name, "v1", anyone).Patch(t.Context(), Object, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		r.record(t, name, Patch, err)
		_, err = r.at(t, name, "v1", anyone).List(t.Context(), metav1.ListOptions{})
		r.record(t, name, List, err)
	},
	"without-credentials": func(t *testing.T, r *recorder, name string) {
		stranger := rest.AnonymousClientConfig(r.Kubeconfig)
		stranger.BearerToken = "expired"
		_, err := r.at(t, name, "v1", stranger).Patch(t.Context(), Object, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		r.record(t, name, Patch, err)
	},
	"object-not-found": func(t *testing.T, r *recorder, name string) {
		expect.NoError(t, r.at(t, name, "v1", r.Kubeconfig).Delete(t.Context(), Object, metav1.DeleteOptions{}))
		r.record(t, name, Patch, r.patch(t, name, "{}", metav1.PatchOptions{}))
	},
	"version-not-served": func(t *testing.T, r *recorder, name string) {
		expect.NoError(t, r.change(t.Context(), name, `[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`))
		r.failing(t, name, regexp.MustCompile("could not find the requested resource"), List)
	},
	"definition-deleted": func(t *testing.T, r *recorder, name string) {
		expect.NoError(t, r.Client.Delete(t.Context(), definition(name)))
		r.failing(t, name, regexp.MustCompile("could not find the requested resource"), List)
	},
	"conflict": func(t *testing.T, r *recorder, name string) {
		r.record(t, name, Patch, r.patch(t, name, `{"metadata": {"resourceVersion": "1"}}`, metav1.PatchOptions{DryRun: dryRun}))
	},
	"too-large-for-etcd": func(t *testing.T, r *recorder, name string) {
		r.record(t, name, Patch, r.patch(t, name, `{"host": "`+strings.Repeat("x", 1_700_000)+`"}`, metav1.PatchOptions{}))
	},
	"too-large-for-the-connection": func(t *testing.T, r *recorder, name string) {
		r.record(t, name, Patch, r.patch(t, name, `{"host": "`+strings.Repeat("x", 2_500_000)+`"}`, metav1.PatchOptions{}))
	},
	"too-large-for-the-server": func(t *testing.T, r *recorder, name string) {
		r.record(t, name, Patch, r.patch(t, name, `{"host": "`+strings.Repeat("x", 4_000_000)+`"}`, metav1.PatchOptions{}))
	},
	"namespace-terminating": func(t *testing.T, r *recorder, name string) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		expect.NoError(t, r.Client.Create(t.Context(), namespace))
		expect.NoError(t, r.Client.Delete(t.Context(), namespace)) // no controller ends it
		objects, err := dynamic.NewForConfig(r.Kubeconfig)
		expect.NoError(t, err)
		expect.Eventually(t, "objects cannot be created", func() (bool, string) {
			_, err = objects.Resource(schema.GroupVersionResource{Group: Group, Version: "v1beta1", Resource: name}).Namespace(name).
				Create(t.Context(), object(name), metav1.CreateOptions{DryRun: dryRun})
			return err != nil, "they can"
		})
		r.record(t, name, Create, err)
	},
	"pod-security": func(t *testing.T, r *recorder, name string) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		expect.NoError(t, r.Client.Create(t.Context(), namespace))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "privileged"},
			Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		r.record(t, name, Create, r.Client.Create(t.Context(), pod))
	},
}
