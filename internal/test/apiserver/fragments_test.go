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

// testApplyPartial applies objects without spec, with an empty one, with only metadata or status:
// no version adds anything.
func testApplyPartial(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "partial")
	for _, storage := range []string{"v1", "v1beta1"} {
		if storage != "v1" {
			k.store(t, storage)
		}
		for _, version := range versions {
			for _, fields := range []string{"{}", "spec: {}", "spec: {ports: []}", "metadata: {labels: {a: b}}"} {
				got, err := k.apply(t, version, "applier", fields, false)
				expect.NoError(t, err)
				want := fieldsOf(t, fields)
				delete(want, "metadata")
				for _, read := range versions {
					object := k.get(t, read, "one")
					for _, head := range []string{"apiVersion", "kind", "metadata"} {
						delete(object.Object, head)
					}
					if diff := cmp.Diff(want, object.Object); diff != "" {
						t.Errorf("%s at %s, read at %s (-want +got):\n%s", fields, version, read, diff)
					}
				}
				if len(got.GetAnnotations()) > 0 {
					t.Errorf("%s at %s: annotations %v", fields, version, got.GetAnnotations())
				}
				expect.NoError(t, k.at("v1").Delete(t.Context(), "one", metav1.DeleteOptions{}))
			}
		}
	}
}

// testUpdateManagers: preserved data belongs to no client that updates instead of applying,
// whatever it changes.
func testUpdateManagers(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "updates")
	create := metav1.CreateOptions{FieldManager: "creator"}
	_, err := k.at("v1").Create(t.Context(), k.gadget(t, "v1", "one", "spec: {tier: gold, endpoint: {host: a, port: 80}}"), create)
	expect.NoError(t, err)
	update := func(version, manager string, edit func(spec map[string]any)) {
		object := k.get(t, version, "one")
		edit(object.Object["spec"].(map[string]any))
		_, err := k.at(version).Update(t.Context(), object, metav1.UpdateOptions{FieldManager: manager})
		expect.NoError(t, err)
	}
	update("v1alpha1", "old", func(spec map[string]any) { spec["hostPort"] = "a:81" })
	wantOwners(t, "a string that holds two fields", k.get(t, "v1", "one"),
		`{creator v1: {f:spec: {.: {}, f:tier: {}, f:endpoint: {.: {}, f:host: {}}}}, old v1alpha1: {f:spec: {f:hostPort: {}}}}`)
	update("v1beta1", "mid", func(spec map[string]any) { spec["hint"] = "x" })
	update("v1", "new", func(spec map[string]any) { spec["tier"] = "silver" })
	one := k.get(t, "v1", "one")
	wantFields(t, "at v1", one, "spec: {tier: silver, endpoint: {host: a, port: 81}}")
	wantOwners(t, "after all", one, `{creator v1: {f:spec: {.: {}, f:endpoint: {.: {}, f:host: {}}}},
		old v1alpha1: {f:spec: {f:hostPort: {}}}, mid v1beta1: {f:spec: {f:hint: {}}}, new v1: {f:spec: {f:tier: {}}}}`)
	wantFields(t, "at v1beta1", k.get(t, "v1beta1", "one"), "spec: {hint: x, address: {host: a, port: 81}}")
	if _, kept := k.get(t, "v1alpha1", "one").GetAnnotations()[conversion.AnnotationName(k.crd, "v1")]; !kept {
		t.Error("the tier is not preserved at v1alpha1")
	}
}

var filledKind = twoVersions{
	v1:    "size: {type: integer}",
	v2:    "size: {type: integer}, mode: {type: string}",
	rules: defaultRules,
}

// testApplyDefaults applies at a version that lacks a field which a rule sets. The field belongs to
// the client that applies it at the version that has it.
func testApplyDefaults(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "filled", filledKind)
	for _, step := range []struct{ what, version, manager, fields, want, owners string }{
		{
			"a field that no one applied", "v1", "old", "spec: {size: 1}",
			"spec: {size: 1, mode: Standard}", "{old v1: {f:spec: {f:size: {}}}}",
		},
		{
			"what the rule gave it", "v2", "new", "spec: {mode: Standard}",
			"spec: {size: 1, mode: Standard}", "{old v1: {f:spec: {f:size: {}}}, new v2: {f:spec: {f:mode: {}}}}",
		},
		{
			"an edit besides it", "v1", "old", "spec: {size: 2}",
			"spec: {size: 2, mode: Standard}", "{old v1: {f:spec: {f:size: {}}}, new v2: {f:spec: {f:mode: {}}}}",
		},
		{
			"another value", "v2", "new", "spec: {mode: Odd}",
			"spec: {size: 2, mode: Odd}", "{old v1: {f:spec: {f:size: {}}}, new v2: {f:spec: {f:mode: {}}}}",
		},
		{
			"an edit besides that", "v1", "old", "spec: {size: 3}",
			"spec: {size: 3, mode: Odd}", "{old v1: {f:spec: {f:size: {}}}, new v2: {f:spec: {f:mode: {}}}}",
		},
		{
			// At v1 both the field and its absence are preserved, in one annotation, which for the
			// API server is one field, and still exists.
			"a field that no one applies any more", "v2", "new", "spec: {}",
			"spec: {size: 3, mode: Odd}", "{old v1: {f:spec: {f:size: {}}}, new v2: {f:spec: {}}}",
		},
	} {
		_, err := k.apply(t, step.version, step.manager, step.fields, false)
		expect.NoError(t, err)
		one := k.get(t, "v2", "one")
		wantFields(t, step.what, one, step.want)
		wantOwners(t, step.what, one, step.owners)
	}
}
