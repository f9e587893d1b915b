//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/rewrite"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
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
	expect.Equal(t, "labels of blue at v2", map[string]string{"own": "x", "example.com/team": "blue"}, blue.GetLabels())
	expect.Equal(t, "annotations of blue at v2", map[string]string{"example.com/note": "a note"}, blue.GetAnnotations())
	wantFields(t, "blue at v2", blue, "spec: {size: 1}")
	red := k.get(t, "v1", "red")
	expect.Equal(t, "labels of red at v1", nil, red.GetLabels())
	wantFields(t, "red at v1", red, "spec: {size: 2, team: red}")

	selected := map[string][]string{"v1": nil, "v2": {"blue"}}
	for version, want := range selected {
		expect.Equal(t, "selected at "+version, want, k.names(t, version, metav1.ListOptions{LabelSelector: "example.com/team=blue"}))
	}
	k.mergePatch(t, "v2", "blue", "metadata: {labels: {example.com/team: green}, annotations: {example.com/note: null}}")
	wantFields(t, "blue at v1 after its label changed", k.get(t, "v1", "blue"), "spec: {size: 1, team: green}")
	k.mergePatch(t, "v1", "blue", "spec: {team: null}")
	expect.Equal(t, "labels of blue without a team", map[string]string{"own": "x"}, k.get(t, "v2", "blue").GetLabels())
}

// The defaults of replicas and tier differ between the versions.
var shopVersions = versionsOf("v1beta1",
	schemas{name: "v1beta1", spec: `default: {}, properties: {
  ports: {type: array, items: {type: object, properties: {label: {type: string}, number: {type: integer, default: 80}}}},
  image: {type: string}, replicas: {type: integer, default: 1}, timeout: {type: string, default: 30s}}`},
	schemas{name: "v1", spec: `properties: {
  listeners: {type: array, items: {type: object, properties: {title: {type: string}, number: {type: integer, default: 443}}}},
  container: {type: object, properties: {image: {type: string}, tier: {type: string, default: gold}}},
  replicas: {type: integer, default: 3}, timeoutSeconds: {type: integer}}`})

const shopRules = `
hub: v1
spokes:
- version: v1beta1
  rules:
  - move: {from: .spec.ports, to: .spec.listeners}
  - move: {from: ".spec.ports[*].label", to: ".spec.listeners[*].title"}
  - move: {from: .spec.image, to: .spec.container.image}
  - cast: {from: .spec.timeout, to: .spec.timeoutSeconds, as: Seconds}
`

// The manifests of a repository, with a format for the group and the version.
var shopManifests = []string{
	"apiVersion: %s # old\nkind: Gadget\nmetadata: {name: bare}\n",
	"apiVersion: %s\nkind: Gadget\nmetadata: {name: empty}\nspec: {}\n",
	"apiVersion: %s\nkind: Gadget\nmetadata:\n  name: shop\nspec:\n  # All of them are public.\n  ports:\n  - label: http # plain\n  - {label: https, number: 8443}\n  image: nginx\n",
	"apiVersion: %s\nkind: Gadget\nmetadata:\n  name: replicas\nspec:\n  replicas: 3\n  timeout: 90s\n  image: &image nginx\n  ports:\n  - &port {label: a}\n  - *port\n",
	`{"apiVersion": "%s", "kind": "Gadget", "metadata": {"name": "json"}, "spec": {"ports": [{"number": 1}]}}`,
}

// testRewrittenManifests: a repository is applied at the old version, and then, rewritten, at the new
// one. The API server's dry run makes of each new manifest what its conversion makes of the object,
// and applying it changes nothing but the version of the field manager: Git and the cluster stay in
// sync.
func testRewrittenManifests(t *testing.T, s *apiServer) {
	k := s.install(t, "rewritten", shopVersions, shopRules)
	rewriter := k.rewriter(t, shopRules, "v1")
	for _, format := range shopManifests {
		before := fmt.Sprintf(format, k.group+"/v1beta1")
		result := rewriter.Text([]byte(before))
		if len(result.Objects) != 1 || result.Objects[0].State != rewrite.Rewritten {
			t.Fatalf("%s became %+v", before, result.Objects)
		}
		old, renewed := fieldsOf(t, before), fieldsOf(t, string(result.Text))
		name := (&unstructured.Unstructured{Object: old}).GetName()
		options := metav1.ApplyOptions{FieldManager: "git"}
		_, err := k.at("v1beta1").Apply(t.Context(), name, &unstructured.Unstructured{Object: old}, options)
		expect.NoError(t, err)
		converted := k.get(t, "v1", name)
		options.DryRun = []string{metav1.DryRunAll}
		dry, err := k.at("v1").Apply(t.Context(), name, &unstructured.Unstructured{Object: renewed}, options)
		expect.NoError(t, err)
		if !reflect.DeepEqual(dry.Object["spec"], converted.Object["spec"]) {
			t.Errorf("%s\nbecame\n%s\nof which the API server makes\n%v\nand not\n%v", before, result.Text, dry.Object["spec"], converted.Object["spec"])
		}
		options.DryRun = nil
		applied, err := k.at("v1").Apply(t.Context(), name, &unstructured.Unstructured{Object: renewed}, options)
		expect.NoError(t, err)
		if applied.GetGeneration() != converted.GetGeneration() || !reflect.DeepEqual(applied.Object["spec"], converted.Object["spec"]) {
			t.Errorf("%s: the generation became %d from %d, and the spec %v", name, applied.GetGeneration(), converted.GetGeneration(), applied.Object["spec"])
		}
	}
}

// rewriter returns a Rewriter for the rules of a kind.
func (k *kind) rewriter(t *testing.T, rules, to string) *rewrite.Rewriter {
	t.Helper()
	crd, err := k.crds.Get(t.Context(), k.crd, metav1.GetOptions{})
	expect.NoError(t, err)
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: k.crd}}
	policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{}}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(rules), policy.Spec.Converter.Declarative))
	result, errs := verify.Compile(policy, crd)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	rewriter, err := rewrite.New(policy, crd, result, rewrite.Options{To: to})
	expect.NoError(t, err)
	return rewriter
}
