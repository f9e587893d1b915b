//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// schemas are those of one version, in YAML: of the spec, and of the fields of the status. A version with a status has
// that subresource.
type schemas struct {
	name, spec, status string
	// scaled adds the subresource scale.
	scaled bool
}

// versionsOf returns the versions of a CRD, which are all served.
func versionsOf(storage string, all ...schemas) string {
	var text strings.Builder
	for _, one := range all {
		subresources, status := "", ""
		if one.status != "" {
			subresources, status = "status: {}", ", status: {type: object, properties: {"+one.status+"}}"
		}
		if one.scaled {
			subresources += ", scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}"
		}
		fmt.Fprintf(&text, "- {name: %s, served: true, storage: %t, subresources: {%s}, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, %s}%s}}}}\n",
			one.name, one.name == storage, subresources, one.spec, status)
	}
	return text.String()
}

// twoVersions has the schemas of spec in v1 and v2, and the rules.
type twoVersions struct{ v1, v2, rules string }

// versions returns the versions of a CRD with a storage version.
func (k twoVersions) versions(storage string) string {
	return versionsOf(storage, schemas{name: "v1", spec: "properties: {" + k.v1 + "}"}, schemas{name: "v2", spec: "properties: {" + k.v2 + "}"})
}

// installTwo installs a kind that is stored at v1.
func (s *apiServer) installTwo(t *testing.T, name string, two twoVersions) *kind {
	t.Helper()
	return s.install(t, name, two.versions("v1"), two.rules)
}

// evolve changes schemas and rules, and returns when the API server uses them.
func (k *kind) evolve(t *testing.T, to twoVersions, storage string) {
	t.Helper()
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	expect.NoError(t, yaml.UnmarshalStrict([]byte(to.versions(storage)), &versions))
	crd, err := k.crds.Get(t.Context(), k.crd, metav1.GetOptions{})
	expect.NoError(t, err)
	crd.Spec.Versions = versions
	before := k.converter
	k.converter = newConverter(t, compileRules(t, crd, to.rules))
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions, crd.Spec.Conversion = versions, k.conversion()
	})
	before.stop()
	for _, version := range []string{"v1", "v2"} {
		k.awaitServed(t, version)
	}
	k.store(t, storage)
}

// rewrite writes an object at the storage version, as a migration does, or at another one, which
// moves preserved values to fields that exist now.
func (k *kind) rewrite(t *testing.T, version, name string) {
	t.Helper()
	expect.Success(t, name+" is rewritten", func(ctx context.Context) error {
		_, err := k.at(version).Patch(ctx, name, "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{})
		return err
	})
}

// preservedOf returns the paths of a version's preserved data in an object.
func (k *kind) preservedOf(object *unstructured.Unstructured, version string) []string {
	for _, held := range k.engine.PreservedIn(object.GetAnnotations()) {
		if held.Version == version {
			return held.Fields
		}
	}
	return nil
}

const (
	moveA    = "{move: {from: .spec.a, to: .spec.b}}"
	withNote = "a: {type: string}, note: {type: string}"
	ports    = "ports: {type: array, items: {type: object, properties: {name: {type: string}%s}}}"
	keyed    = "ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}%s}}}"
)

// rulesOf returns the rules of the spoke v1, or of v2 if v1 is the hub.
func rulesOf(hub, rules string) string {
	spoke := map[string]string{"v1": "v2", "v2": "v1"}[hub]
	return "{hub: " + hub + ", spokes: [{version: " + spoke + ", rules: [" + rules + "]}]}"
}

// changes give a preserved field a place, or another one. Engine tests have more of them.
var changes = map[string]struct {
	before, after twoVersions
	// spec is an object's spec at v1. data is in etcd in v2 after a write at v1 by the new rules,
	// with preserved in the annotation.
	spec, data string
	preserved  []string
}{
	"translated": {
		before: twoVersions{withNote, "b: {type: string}", rulesOf("v2", moveA)},
		after:  twoVersions{withNote, "b: {type: string}, worth: {type: string}", rulesOf("v2", moveA+", {values: {from: .spec.note, to: .spec.worth, table: [{from: precious, to: High}]}}")},
		spec:   "a: '1', note: precious", data: "b: '1', worth: High",
	},
	"hub": {
		before: twoVersions{withNote, "b: {type: string}", rulesOf("v2", moveA)},
		after:  twoVersions{withNote, "b: {type: string}", rulesOf("v1", "{move: {from: .spec.b, to: .spec.a}}")},
		spec:   "a: '1', note: precious", data: "b: '1'", preserved: []string{".spec.note"},
	},
	"keyed": {
		before: twoVersions{fmt.Sprintf(ports, ", w: {type: integer}"), fmt.Sprintf(ports, ""), rulesOf("v2", "")},
		after:  twoVersions{fmt.Sprintf(keyed, ", w: {type: integer}"), fmt.Sprintf(keyed, ""), rulesOf("v2", "")},
		spec:   "ports: [{name: b}, {name: a, w: 7}]", data: "ports: [{name: b}, {name: a}]", preserved: []string{".spec.ports[*].w"},
	},
}

// testChanges changes rules, schemas and hub while an object is stored at v2 with the values of v1
// in its annotation. A read at v1, a write at v1, and v1 as storage version all return what was
// written at v1 before.
func testChanges(t *testing.T, s *apiServer) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := "spec: {" + change.spec + "}"
			k := s.install(t, "changes-"+name, change.before.versions("v2"), change.before.rules)
			for _, object := range []string{"read", "written", "rolled-back"} {
				k.create(t, "v1", object, spec)
			}
			k.evolve(t, change.after, "v2")
			wantFields(t, "at v1", k.get(t, "v1", "read"), spec)
			k.mergePatch(t, "v1", "written", "metadata: {labels: {touched: 'yes'}}")
			wantFields(t, "in etcd, when it was written at v1", k.stored(t, "written"), "spec: {"+change.data+"}")
			got := k.preservedOf(k.stored(t, "written"), "v1")
			expect.Equal(t, "in the annotation", fmt.Sprint(change.preserved), fmt.Sprint(got))
			wantFields(t, "at v1, when it was written there", k.get(t, "v1", "written"), spec)
			k.store(t, "v1")
			k.rewrite(t, "v1", "rolled-back")
			if stored := k.stored(t, "rolled-back"); versionOf(stored) != "v1" {
				t.Errorf("it is stored at %s", versionOf(stored))
			} else {
				wantFields(t, "in etcd, when v1 is stored again", stored, spec)
			}
		})
	}
}
