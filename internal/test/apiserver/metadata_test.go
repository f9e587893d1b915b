//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var labelKind = twoVersions{
	v1:    "team: {type: string}, note: {type: string}, size: {type: integer}",
	v2:    "size: {type: integer}",
	rules: labelRules,
}

const labelRules = `
hub: v2
spokes:
- version: v1
  rules:
  - move: {from: .spec.team, to: '.metadata.labels["example.com/team"]'}
  - move: {from: .spec.note, to: '.metadata.annotations["example.com/note"]'}
`

// testLabels has fields of the old version that are a label and an annotation in the new one, where
// they can be selected and edited.
func testLabels(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "labels", labelKind)
	k.create(t, "v1", "blue", "{metadata: {labels: {own: x}}, spec: {team: blue, note: 'a note', size: 1}}")
	k.create(t, "v2", "red", "{metadata: {labels: {example.com/team: red}}, spec: {size: 2}}")

	blue := k.get(t, "v2", "blue")
	wantText(t, "labels of blue at v2", blue.GetLabels(), map[string]string{"own": "x", "example.com/team": "blue"})
	wantText(t, "annotations of blue at v2", blue.GetAnnotations(), map[string]string{"example.com/note": "a note"})
	wantFields(t, "blue at v2", blue, "spec: {size: 1}")
	red := k.get(t, "v1", "red")
	wantText(t, "labels of red at v1", red.GetLabels(), nil)
	wantFields(t, "red at v1", red, "spec: {size: 2, team: red}")

	selected := map[string][]string{"v1": nil, "v2": {"blue"}}
	for version, want := range selected {
		if diff := cmp.Diff(want, k.names(t, version, metav1.ListOptions{LabelSelector: "example.com/team=blue"})); diff != "" {
			t.Errorf("selected at %s (-want +got):\n%s", version, diff)
		}
	}
	k.mergePatch(t, "v2", "blue", "metadata: {labels: {example.com/team: green}, annotations: {example.com/note: null}}")
	wantFields(t, "blue at v1 after its label changed", k.get(t, "v1", "blue"), "spec: {size: 1, team: green}")
	k.mergePatch(t, "v1", "blue", "spec: {team: null}")
	wantText(t, "labels of blue without a team", k.get(t, "v2", "blue").GetLabels(), map[string]string{"own": "x"})
}

func wantText(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// testMetadata updates an object with all kinds of metadata at every version: they all have the
// same metadata, except for preserved data.
func testMetadata(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "metadata")
	for _, written := range versions {
		name := "from-" + written
		created := k.create(t, written, name, `
          metadata:
            labels: {a/b: "1", empty: ""}
            annotations: {text: "line\nüber \u2028 \"quoted\" <&>", empty: ""}
            finalizers: [example.com/hold]
            ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: 0b54a7a6-6e0f-4d61-a4a9-6b4c4a2b1c0d, controller: true}]
          `+spec(written, "a"))
		k.wantMetadata(t, created)
		for _, version := range versions {
			k.mergePatch(t, version, name, "{metadata: {labels: {by: "+version+"}}, spec: {limit: "+strconv.Itoa(len(version))+"}}")
			k.wantMetadata(t, k.get(t, version, name))
		}
		expect.NoError(t, k.at(written).Delete(t.Context(), name, metav1.DeleteOptions{}))
		deleting := k.get(t, written, name)
		if deleting.GetDeletionTimestamp() == nil {
			t.Errorf("%s is not being deleted", name)
		}
		k.wantMetadata(t, deleting)
		k.mergePatch(t, "v1beta1", name, "metadata: {finalizers: null}")
		if left := k.names(t, "v1", metav1.ListOptions{FieldSelector: "metadata.name=" + name}); len(left) > 0 {
			t.Errorf("%s outlives its finalizer", name)
		}
	}
}

// wantMetadata compares the metadata at every version.
func (k *kind) wantMetadata(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	for _, read := range versions {
		got := k.get(t, read, object.GetName())
		if diff := cmp.Diff(metadataOf(object), metadataOf(got)); diff != "" {
			t.Errorf("metadata of %s at %s (-%s +%s):\n%s", object.GetName(), read, versionOf(object), read, diff)
		}
	}
}

// metadataOf returns the metadata without preserved data.
func metadataOf(object *unstructured.Unstructured) map[string]any {
	metadata := object.DeepCopy().Object["metadata"].(map[string]any)
	annotations := metadata["annotations"].(map[string]any)
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, conversion.PreservedPrefix) })
	return metadata
}

// testForged writes preserved data by hand: it restores fields that the object lacks,
// including those of the status, and does not change others. Unreadable data, and fields that the
// version lacks, stay in the annotation.
func testForged(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "forged")
	forged := `{"format": 2, "fields": {"/spec/tier": "forged", "/spec/endpoint/host": "evil", "/spec/mode": "Standard", "/metadata/name": "other",
		"/metadata/finalizers": ["evil"], "/spec/ports/[name=\"http\"]/weight": 7, "/spec/ports/[name=\"new\"]/weight": 8, "/status/phase": "evil"}}`
	own := conversion.AnnotationName(k.crd, "v1")
	for text, left := range map[string]map[string]string{
		forged: {own: `{"format":2,"fields":{"/metadata/finalizers":["evil"],"/metadata/name":"other"}}`},
		`{"format": 2, "fields": {"/spec": {"tier": "whole"}}}`: nil,
		"not JSON": {own: "not JSON"},
		"[]":       {own: "[]"},
		"null":     {own: "null"},
		"":         {own: ""},
	} {
		object := k.gadget(t, "v1beta1", "forged", seen("v1", "v1beta1", "a"))
		object.SetAnnotations(map[string]string{own: text})
		created, err := k.at("v1beta1").Create(t.Context(), object, metav1.CreateOptions{})
		expect.NoError(t, err)
		want := fieldsOf(t, seen("v1beta1", "v1", "a"))
		var status any
		spec := want["spec"].(map[string]any)
		switch {
		case text == forged:
			spec["tier"], status = "forged", map[string]any{"phase": "evil"}
			spec["ports"].([]any)[0].(map[string]any)["weight"] = int64(7)
		case left == nil:
			spec["tier"] = "whole"
		}
		read := k.get(t, "v1", "forged")
		if diff := cmp.Diff(want["spec"], read.Object["spec"]); diff != "" {
			t.Errorf("read at v1 with %s preserved (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff(status, read.Object["status"]); diff != "" {
			t.Errorf("status read at v1 with %s preserved (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff(left, read.GetAnnotations()); diff != "" || read.GetFinalizers() != nil {
			t.Errorf("read at v1 with %s preserved: finalizers %v, annotations (-want +got):\n%s", text, read.GetFinalizers(), diff)
		}
		expect.NoError(t, k.at("v1").Delete(t.Context(), created.GetName(), metav1.DeleteOptions{}))
	}
}
