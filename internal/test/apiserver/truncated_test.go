//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
)

// Both versions of a blob have their own text without a limit.
var blobVersions = versionsOf("v2", blob("v1", "old"), blob("v2", "blob"))

func blob(version, text string) schemas {
	return schemas{
		name: version, spec: "properties: {team: {type: string}, replicas: {type: integer}, " + text + ": {type: string}}",
		status: "replicas: {type: integer}", scaled: true,
	}
}

const blobRules = `{hub: v2, spokes: [{version: v1}]}`

func large(field string) string {
	return "spec: {team: a, " + field + ": " + incompressible.Text(600<<10) + "}"
}

// truncates lets the converter truncate what is read.
func (k *kind) truncates(t *testing.T) {
	t.Helper()
	changed := *k.plan
	changed.Truncating = &conversion.Truncating{Key: "of the test"}
	k.converter = newConverter(t, &changed)
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Conversion = k.conversion() })
	expect.Success(t, "the API server asks the new converter", func(ctx context.Context) error {
		// One of the two versions is stored, and read without the converter.
		_, v1 := k.at("v1").List(ctx, metav1.ListOptions{})
		_, v2 := k.at("v2").List(ctx, metav1.ListOptions{})
		return errors.Join(v1, v2)
	})
}

// admits creates the webhook configuration, and waits until it is in force.
func (k *kind) admits(t *testing.T) {
	t.Helper()
	crd, err := k.crds.Get(t.Context(), k.crd, metav1.GetOptions{})
	expect.NoError(t, err)
	rules := &v1alpha1.DeclarativeConverter{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(blobRules), rules))
	configuration := activation.AdmissionConfiguration(k.crd, crd, crds.StorageVersion(crd), []activation.AdmissionClient{{
		Hash: k.plan.Hash(), Condition: compile.Compile(crd, rules).AdmissionCondition,
		Client: admissionregistrationv1.WebhookClientConfig{
			URL: new("https://" + k.address() + activation.AdmitPath + "/" + k.plan.Hash()), CABundle: k.bundle,
		},
	}})
	clients, err := kubernetes.NewForConfig(k.Kubeconfig)
	expect.NoError(t, err)
	_, err = clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.Success(t, "admission is in force", func(ctx context.Context) error {
		forged := k.gadget(t, "v2", "forged", `metadata: {annotations: {`+conversion.AnnotationName(k.crd, "v1")+`: '{"format":3,"omitted":{}}'}}`)
		_, err := k.in(aside, "v2").Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "denied the request") {
			return nil
		}
		return fmt.Errorf("a marker was answered with: %w", err)
	})
}

// writes returns the errors of requests that change, or could change, an existing object.
func (k *kind) writes(t *testing.T, version, name string) map[string]error { //nolint:unparam // tests read better with the name
	t.Helper()
	errs := map[string]error{}
	patch := func(text string, subresources ...string) error {
		_, err := k.at(version).Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
		return err
	}
	errs["patch"] = patch(`{"spec": {"team": "b"}}`)
	errs["finalizer"] = patch(`{"metadata": {"finalizers": ["example.com/keep"]}}`)
	errs["status"] = patch(`{"status": {"replicas": 3}}`, "status")
	_, errs["apply"] = k.at(version).Apply(t.Context(), name, k.gadget(t, version, name, "spec: {team: c}"), metav1.ApplyOptions{FieldManager: "applier", Force: true})
	read, err := k.at(version).Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	expect.NoError(t, unstructured.SetNestedField(read.Object, "d", "spec", "team"))
	_, errs["update"] = k.at(version).Update(t.Context(), read, metav1.UpdateOptions{})
	return errs
}

// wantUntouched expects unchanged bytes in etcd.
func (k *kind) wantUntouched(t *testing.T, name string, before int64) { //nolint:unparam // tests read better with the name
	t.Helper()
	expect.Equal(t, "revision of "+name+", which is not to be written", before, k.revision(t, name))
}

func (k *kind) revision(t *testing.T, name string) int64 {
	t.Helper()
	entry, err := k.Etcd.Get(t.Context(), k.key(namespace, name))
	expect.NoError(t, err)
	return entry.ModRevision
}

// wantReads gets, lists and watches at v1, at which the object of v2 is truncated.
func (k *kind) wantReads(t *testing.T, name string, names ...string) {
	t.Helper()
	const version = "v1"
	read := k.get(t, version, name)
	wantFields(t, name+" at "+version, read, "spec: {team: a}")
	expect.Contains(t, "the marker of "+name, read.GetAnnotations()[conversion.AnnotationName(k.crd, "v2")], `"omitted":{"count":1,`)
	expect.Equal(t, "list at "+version, names, k.names(t, version, metav1.ListOptions{}))
	ctx, cancel := context.WithTimeout(t.Context(), expect.Patience)
	defer cancel()
	watch, err := k.at(version).Watch(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=" + name})
	expect.NoError(t, err)
	defer watch.Stop()
	if event, open := <-watch.ResultChan(); !open || event.Type != "ADDED" {
		t.Errorf("watch at %s: got %v", version, event)
	}
}

// testTruncated has an object of the hub, which is stored, from before such objects were rejected:
// all versions can be read, and a truncated object is never stored.
func testTruncated(t *testing.T, s *apiServer) {
	k := s.install(t, "truncated", blobVersions, blobRules)
	k.create(t, "v2", "large", large("blob"))
	k.create(t, "v2", "small", "spec: {team: a, blob: small}")
	k.truncates(t)
	before := k.revision(t, "large")
	k.wantReads(t, "large", "large", "small")
	const truncated = "the object was truncated when it was read at v1, because the fields that only version v2 has take "
	wantErrors(t, k.writes(t, "v1", "large"), truncated, "write it at v2", "make .spec.blob smaller")
	k.wantUntouched(t, "large", before)
	k.mergePatch(t, "v1", "small", "spec: {team: b}")
	wantFields(t, "small", k.get(t, "v2", "small"), "spec: {team: b, blob: small}")

	k.admits(t)
	const tooLarge = "the object cannot be converted to v1 as a whole: the fields that only version v2 has take "
	errs := k.writes(t, "v2", "large")
	_, errs["create"] = k.at("v2").Create(t.Context(), k.gadget(t, "v2", "new", large("blob")), metav1.CreateOptions{})
	wantErrors(t, errs, tooLarge, "denied the request", "make .spec.blob smaller")
	wantErrors(t, k.writes(t, "v1", "large"), truncated)
	k.wantUntouched(t, "large", before)

	// A write at the stored version needs no converter, even if the object is too large. A
	// truncated object is rejected.
	k.stop()
	k.mergePatch(t, "v2", "small", "spec: {team: c}")
	k.create(t, "v2", "unasked", large("blob"))
	marked := k.gadget(t, "v2", "marked", `metadata: {annotations: {`+conversion.AnnotationName(k.crd, "v1")+`: '{"format":3,"omitted":{}}'}}`)
	_, err := k.at("v2").Create(t.Context(), marked, metav1.CreateOptions{})
	wantErrors(t, map[string]error{"marked": err}, "failed calling webhook")
	k.start(t)
	k.wantReads(t, "unasked", "large", "small", "unasked")
	expect.NoError(t, k.at("v2").Delete(t.Context(), "unasked", metav1.DeleteOptions{}))

	k.mergePatch(t, "v2", "large", "spec: {blob: short}")
	// A watch cache may have the truncated object a little longer.
	expect.Success(t, "it can be written at v1", func(ctx context.Context) error {
		_, err := k.at("v1").Patch(ctx, "large", types.MergePatchType, []byte(`{"spec": {"team": "z"}}`), metav1.PatchOptions{})
		return err
	})
	wantFields(t, "large no more", k.get(t, "v2", "large"), "spec: {team: z, blob: short}")
}

// testTruncatedFlip changes the storage version and reverts it, with an object that is truncated at
// one of them.
func testTruncatedFlip(t *testing.T, s *apiServer) {
	k := s.install(t, "flipped", blobVersions, blobRules)
	k.create(t, "v2", "large", large("blob"))
	k.truncates(t)
	k.admits(t)
	before := k.revision(t, "large")
	k.store(t, "v1")
	k.wantReads(t, "large", "large")
	for _, version := range []string{"v1", "v2"} {
		errs := k.writes(t, version, "large")
		_, errs["no-op patch"] = k.at(version).Patch(t.Context(), "large", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		wantErrors(t, errs, "the fields that only version v2 has take ")
	}
	foreground := k.at("v1").Delete(t.Context(), "large", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	wantErrors(t, map[string]error{"foreground deletion": foreground}, "denied the request", "the object was truncated when it was read at v1")
	k.wantUntouched(t, "large", before)
	_, err := k.at("v2").Create(t.Context(), k.gadget(t, "v2", "new", large("blob")), metav1.CreateOptions{})
	wantErrors(t, map[string]error{"create at v2": err}, "denied the request", "the object cannot be converted to v1 as a whole")
	_, err = k.at("v1").Create(t.Context(), k.gadget(t, "v1", "old", large("old")), metav1.CreateOptions{})
	wantErrors(t, map[string]error{"create at v1": err}, "denied the request", "the object cannot be converted to v2 as a whole")

	k.store(t, "v2")
	k.wantReads(t, "large", "large")
	wantErrors(t, k.writes(t, "v1", "large"), "the object was truncated when it was read at v1")
	k.wantUntouched(t, "large", before)
	expect.NoError(t, k.at("v2").Delete(t.Context(), "large", metav1.DeleteOptions{}))
}
