//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// twoVersions has the schemas of spec in v1 and v2, and the rules.
type twoVersions struct{ v1, v2, rules string }

// versions returns the versions of a CRD with a storage version.
func (k twoVersions) versions(storage string) string {
	const version = "- {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n"
	return fmt.Sprintf(version+version, "v1", storage == "v1", k.v1, "v2", storage == "v2", k.v2)
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
	if stored := storageOf(crd); stored != "" {
		k.store(t, storage)
	}
}

func storageOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
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
func (k *kind) preservedOf(t *testing.T, object *unstructured.Unstructured, version string) []string {
	t.Helper()
	converter, err := conversion.NewConverter(k.plan)
	expect.NoError(t, err)
	for _, held := range converter.PreservedIn(object.GetAnnotations()) {
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
			if got := k.preservedOf(t, k.stored(t, "written"), "v1"); fmt.Sprint(got) != fmt.Sprint(change.preserved) {
				t.Errorf("in the annotation is %v, want %v", got, change.preserved)
			}
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

var ruleKind = twoVersions{
	v1: `data: {type: array, items: {type: object, required: [extract], properties: {extract: {type: object, properties: {key: {type: string}}}}}}, node: {type: string}, timeout: {type: string}, image: {type: string}, old: {type: string},
  env: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}}}},
  secrets: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, optional: {type: boolean}}}}, zones: {type: string}, since: {type: integer}, config: {type: string},
  vars: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}, secret: {type: boolean}}}},
  servers: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, host: {type: string}, zone: {type: string}, probe: {type: object, properties: {timeout: {type: string}, old: {type: string}}}}}}`,
	v2: `dataFrom: {type: array, items: {type: object, properties: {extract: {type: object, properties: {key: {type: string}}}, find: {type: string}, note: {type: string}}}}, nodes: {type: array, items: {type: string}}, timeoutSeconds: {type: integer}, repository: {type: string}, tag: {type: string},
  env: {type: object, additionalProperties: {type: object, properties: {value: {type: string}}}},
  secretNames: {type: array, items: {type: string}}, zones: {type: array, items: {type: string}}, since: {type: string, format: date-time}, vars: {type: object, additionalProperties: {type: string}},
  config: {type: object, properties: {level: {type: string}, outputs: {type: array, items: {type: object, properties: {name: {type: string}, mode: {type: string, default: sync}}}}}},
  net: {type: object, properties: {mode: {type: string}, endpoints: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, address: {type: string},
    health: {type: object, properties: {level: {type: string}, probe: {type: object, properties: {timeoutSeconds: {type: integer}}}}}}}}}}`,
	rules: ruleRules,
}

const ruleRules = `
hub: v2
spokes:
- version: v1
  rules:
  - wrap: {from: .spec.node, to: .spec.nodes}
  - cast: {from: .spec.timeout, to: .spec.timeoutSeconds, as: Seconds}
  - index: {from: .spec.env, to: .spec.env, key: name}
  - wrap: {from: .spec.secrets, to: .spec.secretNames, field: name}
  - index: {from: .spec.vars, to: .spec.vars, key: name, value: value}
  - cast: {from: .spec.zones, to: .spec.zones, as: List, separator: ","}
  - cast: {from: .spec.since, to: .spec.since, as: Timestamp}
  - cast: {from: .spec.config, to: .spec.config, as: YAML}
  - drop: {from: .spec.old}
  - move: {from: .spec.data, to: .spec.dataFrom}
  - exclude: {to: ".spec.dataFrom[*]", without: .extract}
  - move: {from: .spec.servers, to: .spec.net.endpoints}
  - move: {from: ".spec.servers[*].id", to: ".spec.net.endpoints[*].name"}
  - move: {from: ".spec.servers[*].host", to: ".spec.net.endpoints[*].address"}
  - move: {from: ".spec.servers[*].probe", to: ".spec.net.endpoints[*].health.probe"}
  - cast: {from: ".spec.servers[*].probe.timeout", to: ".spec.net.endpoints[*].health.probe.timeoutSeconds", as: Seconds}
  - cel:
      from: {image: .spec.image}
      to: {repository: .spec.repository, tag: .spec.tag}
      forward: {repository: "self.image.split(':')[0]", tag: "self.image.split(':')[1]"}
      backward: {image: "self.repository + ':' + self.tag"}
`

// testRules: rules that compute values, and values that are preserved because the rule is not
// reversible for them.
func testRules(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "rules", ruleKind)
	for name, form := range map[string]struct{ version, fields, other string }{
		"wrap":          {"v1", "node: a", "nodes: [a]"},
		"wrap-two":      {"v2", "nodes: [a, b]", "node: a"},
		"cast":          {"v1", "timeout: 1m30s", "timeoutSeconds: 90"},
		"cast-unusual":  {"v1", "timeout: 90s", "timeoutSeconds: 90"},
		"cast-no-time":  {"v1", "timeout: soon", ""},
		"index":         {"v1", "env: [{name: a, value: x}, {name: b}]", "env: {a: {value: x}, b: {}}"},
		"index-order":   {"v1", "env: [{name: b}, {name: a, value: x}]", "env: {a: {value: x}, b: {}}"},
		"index-twice":   {"v1", "env: [{name: a}, {name: a}]", ""},
		"wrap-field":    {"v1", "secrets: [{name: b}, {name: a, optional: true}]", "secretNames: [b, a]"},
		"wrap-names":    {"v2", "secretNames: [b, a, b]", "secrets: [{name: b}, {name: a}, {name: b}]"},
		"index-value":   {"v1", "vars: [{name: b, value: x, secret: true}, {name: a, value: z}]", "vars: {a: z, b: x}"},
		"index-none":    {"v1", "vars: [{name: b}]", ""},
		"cast-list":     {"v1", "zones: 'a,b'", "zones: [a, b]"},
		"cast-comma":    {"v2", "zones: ['a,b', c]", "zones: 'a,b,c'"},
		"cast-time":     {"v1", "since: 1767323045", "since: '2026-01-02T03:04:05Z'"},
		"cast-yaml":     {"v1", `config: "level: a # why\noutputs: [{name: x}]\nother: 1\n"`, "config: {level: a, outputs: [{name: x, mode: sync}]}"},
		"cast-no-yaml":  {"v1", "config: 'level: ]'", ""},
		"cast-object":   {"v2", "config: {level: 'yes'}", `config: "level: \"yes\"\n"`},
		"cel":           {"v1", "image: 'nginx:1'", "repository: nginx, tag: '1'"},
		"cel-no-tag":    {"v1", "image: nginx", "repository: nginx"},
		"cel-back":      {"v2", "repository: nginx, tag: '1'", "image: 'nginx:1'"},
		"cel-back-half": {"v2", "repository: nginx", ""},
		"exclude":       {"v2", "dataFrom: [{find: x}, {extract: {key: a}, note: o}, {find: z}, {extract: {key: b}}]", "data: [{extract: {key: a}}, {extract: {key: b}}]"},
		"exclude-all":   {"v2", "dataFrom: [{find: x}]", "data: []"},
		"placed":        {"v1", "servers: [{id: a, host: h, zone: west}, {id: b, probe: {timeout: 5s, old: x}}]", "net: {endpoints: [{name: a, address: h}, {name: b, health: {probe: {timeoutSeconds: 5}}}]}"},
		"placed-around": {"v2", "net: {mode: m, endpoints: [{name: a, health: {level: high}}, {name: b, health: {}}]}", "servers: [{id: a}, {id: b}]"},
		"placed-empty":  {"v2", "net: {}", ""},
	} {
		other := map[string]string{"v1": "v2", "v2": "v1"}[form.version]
		k.create(t, form.version, name, "spec: {"+form.fields+"}")
		for range 2 {
			wantFields(t, name+" at "+other, k.get(t, other, name), "spec: {"+form.other+"}")
			wantFields(t, name+" at "+form.version, k.get(t, form.version, name), "spec: {"+form.fields+"}")
			k.mergePatch(t, other, name, "metadata: {labels: {touched: 'yes'}}")
		}
	}
	k.create(t, "v1", "drop", "spec: {old: gone, node: a}")
	k.mergePatch(t, "v2", "drop", "metadata: {labels: {touched: 'yes'}}")
	wantFields(t, "what was dropped", k.get(t, "v1", "drop"), "spec: {node: a}")
}
