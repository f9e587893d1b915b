// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestManifestFollowsPolicy: the author's manifest has the policy's changes of versions, with its
// deprecation warnings.
func TestManifestFollowsPolicy(t *testing.T) {
	is := subject{Name: "a", Versions: []string{hub, joined, nested}, Served: []string{joined, nested}, Deprecated: []string{hub, nested}, Storage: joined}
	definition, err := definitionOf(is, map[string]string{hub: "use another", joined: "of no use any more"})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range got {
		if version, ok := each.(map[string]any); ok {
			delete(version, "schema")
		}
	}
	want := []any{
		map[string]any{"name": hub, "served": false, "storage": false, "deprecated": true, "deprecationWarning": "use another"},
		map[string]any{"name": joined, "served": true, "storage": true},
		map[string]any{"name": nested, "served": true, "storage": false, "deprecated": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWantedVersions: a policy has fields for what the model wants, and nulls for the rest.
func TestWantedVersions(t *testing.T) {
	cases := map[string]struct {
		is   subject
		want map[string]any
	}{
		"nothing": {subject{}, map[string]any{"storageVersion": nil, "retirement": nil}},
		"both": {
			subject{Wanted: joined, Retires: map[string]v1alpha1.RetirementAction{nested: v1alpha1.RetirementRemove, hub: v1alpha1.RetirementReport},
				Accepts: map[string][]string{nested: {".spec"}}},
			map[string]any{"storageVersion": joined, "retirement": []any{
				map[string]any{"version": hub, "action": "Report", "after": "0s"},
				map[string]any{"version": nested, "action": "Remove", "after": "0s", "acceptedLosses": []any{".spec"}},
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, wantedVersions(c.is)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
