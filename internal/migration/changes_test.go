// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// setVerbs sets the rights of the Job to the objects, and waits until the API server uses them.
func (r *resource) setVerbs(ctx context.Context, run string, as Patcher, verbs ...string) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.plural + "-" + run}}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/rules/0/verbs", "value": verbs}})
	if err != nil {
		return err
	}
	if err := r.client.Patch(ctx, role, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := as.Patch(ctx, Patch{Namespace: "default", Name: objectName(0), Body: []byte("{}")})
		return apierrors.IsForbidden(err) != slices.Contains(verbs, "patch"), nil
	})
}

// recreate deletes the definition with its objects, and creates it again.
func (r *resource) recreate(ctx context.Context) error {
	if err := r.client.Delete(ctx, r.definition()); err != nil {
		return err
	}
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := r.client.Get(ctx, client.ObjectKeyFromObject(r.definition()), r.definition())
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return r.client.Create(ctx, r.definition())
}

// convertBy converts objects by a server that changes them.
func (r *resource) convertBy(t *testing.T, change func(*unstructured.Unstructured) error) {
	t.Helper()
	r.switchConversion(t, converter(change))
}

// switchConversion points the definition at a server, and pins further runs to that.
func (r *resource) switchConversion(t *testing.T, handler http.Handler) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	conversion, err := json.Marshal(apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &server.URL, CABundle: ca},
		},
	})
	expect.NoError(t, err)
	expect.NoError(t, r.change(t.Context(), `[{"op": "replace", "path": "/spec/conversion", "value": `+string(conversion)+`}]`))
	r.repin(t)
}

// repin pins further runs to the current definition.
func (r *resource) repin(t *testing.T) {
	t.Helper()
	crd := r.definition()
	expect.NoError(t, r.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	r.pin.Generation = crd.Generation
}

// errConverterUnavailable makes the converter close the connection.
var errConverterUnavailable = errors.New("the converter is unavailable")

type converter func(*unstructured.Unstructured) error

// mark adds a mark to converted objects, which shows in etcd.
func mark(object *unstructured.Unstructured) error {
	object.Object["spec"] = map[string]any{"host": "converted"}
	return nil
}

func (c converter) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		if err := c(object); errors.Is(err, errConverterUnavailable) {
			panic(http.ErrAbortHandler)
		} else if err != nil {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	if review.Response.Result.Status == metav1.StatusFailure {
		review.Response.ConvertedObjects = nil
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// change patches the definition with a JSON patch.
func (r *resource) change(ctx context.Context, patch string) error {
	return r.client.Patch(ctx, r.definition(), client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// unserve stops serving v1, and waits until the API server does.
func (r *resource) unserve(ctx context.Context) error {
	if err := r.change(ctx, `[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		err := r.client.List(ctx, r.list("v1"))
		return apierrors.IsNotFound(err) || meta.IsNoMatchError(err), nil
	})
}
