//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
