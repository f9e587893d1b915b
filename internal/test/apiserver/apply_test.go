//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// applied is a manager's apply of the gadget "one", with the expected result.
type applied struct {
	what             string
	version, manager string
	fields           string
	force            bool
	// conflict is the error of the API server, if any.
	conflict string
	// old and current are all fields afterwards, at v1alpha1 and at v1.
	old, current string
	// owners are the managers' fields, by name and version of the manager.
	owners string
}

func (k *kind) apply(t *testing.T, version, manager, fields string, force bool) (*unstructured.Unstructured, error) {
	t.Helper()
	return k.at(version).Apply(t.Context(), "one", k.gadget(t, version, "one", fields), metav1.ApplyOptions{FieldManager: manager, Force: force})
}

// play applies twice: the second time writes nothing.
func (a applied) play(t *testing.T, k *kind) {
	t.Helper()
	got, err := k.apply(t, a.version, a.manager, a.fields, a.force)
	switch {
	case a.conflict != "" && (!apierrors.IsConflict(err) || err.Error() != a.conflict):
		t.Fatalf("%s: %v, want %s", a.what, err, a.conflict)
	case a.conflict == "" && err != nil:
		t.Fatalf("%s: %v", a.what, err)
	case a.conflict == "":
		again, err := k.apply(t, a.version, a.manager, a.fields, a.force)
		expect.NoError(t, err)
		expect.Equal(t, a.what+": resource version after the same again", got.GetResourceVersion(), again.GetResourceVersion())
	}
	wantFields(t, a.what+": at v1alpha1", k.get(t, "v1alpha1", "one"), a.old)
	current := k.get(t, "v1", "one")
	wantFields(t, a.what+": at v1", current, a.current)
	wantOwners(t, a.what, current, a.owners)
}

// wantOwners compares managedFields, by manager and version, with YAML.
func wantOwners(t *testing.T, what string, object *unstructured.Unstructured, owners string) {
	t.Helper()
	got := map[string]any{}
	for _, entry := range object.GetManagedFields() {
		fields := map[string]any{}
		expect.NoError(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		got[entry.Manager+" "+path.Base(entry.APIVersion)] = fields
	}
	expect.Equal(t, what+": owners", fieldsOf(t, owners), got, cmpopts.EquateEmpty())
}

// testApply uses three managers at three versions.
func testApply(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "apply")
	for _, step := range []applied{
		{
			what: "a part at the old version", version: "v1alpha1", manager: "old", fields: "spec: {hostPort: 'a:80', count: 3}",
			old: "spec: {hostPort: 'a:80', count: 3}", current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 3}}",
			owners: "{old v1alpha1: {f:spec: {f:hostPort: {}, f:count: {}}}}",
		},
		{
			what: "another part at the new one", version: "v1", manager: "new", fields: "spec: {tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			old:     "spec: {hostPort: 'a:80', count: 3, ports: [{name: http, number: 80}]}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 3}, tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:hostPort: {}, f:count: {}}},
				new v1: {f:spec: {f:tier: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}, f:weight: {}}}}}}`,
		},
		{
			what: "a field of the old version's manager", version: "v1", manager: "new",
			fields:   "spec: {tier: gold, scaling: {replicas: 5}, ports: [{name: http, number: 80, weight: 5}]}",
			conflict: `Apply failed with 1 conflict: conflict with "old": .spec.count`,
			old:      "spec: {hostPort: 'a:80', count: 3, ports: [{name: http, number: 80}]}",
			current:  "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 3}, tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:hostPort: {}, f:count: {}}},
				new v1: {f:spec: {f:tier: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}, f:weight: {}}}}}}`,
		},
		{
			what: "part of the old version's string", version: "v1beta1", manager: "mid", fields: "spec: {address: {host: a}}",
			old:     "spec: {hostPort: 'a:80', count: 3, ports: [{name: http, number: 80}]}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 3}, tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:hostPort: {}, f:count: {}}}, mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:tier: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}, f:weight: {}}}}}}`,
		},
		{
			what: "by force", version: "v1", manager: "new", force: true,
			fields:  "spec: {tier: gold, scaling: {replicas: 5}, ports: [{name: http, number: 80, weight: 5}]}",
			old:     "spec: {hostPort: 'a:80', count: 5, ports: [{name: http, number: 80}]}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 5}, tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:hostPort: {}}}, mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:tier: {}, f:scaling: {f:replicas: {}}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}, f:weight: {}}}}}}`,
		},
		{
			what: "the same values at the old version, and no string", version: "v1alpha1", manager: "old",
			fields: "spec: {count: 5, ports: [{name: http, number: 80}]}",
			// The string is a unit, and half of it belongs to another manager.
			old:     "spec: {hostPort: 'a:80', count: 5, ports: [{name: http, number: 80}]}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 5}, tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:count: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}}}}}, mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:tier: {}, f:scaling: {f:replicas: {}}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}, f:weight: {}}}}}}`,
		},
		{
			what: "less at the new version", version: "v1", manager: "new", fields: "spec: {tier: gold, ports: [{name: http, weight: 5}]}",
			old:     "spec: {hostPort: 'a:80', count: 5, ports: [{name: http, number: 80}]}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 5}, tier: gold, ports: [{name: http, number: 80, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:count: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:number: {}}}}}, mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:tier: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:weight: {}}}}}}`,
		},
		{
			what: "an element that the other manager keeps", version: "v1alpha1", manager: "old", fields: "spec: {count: 5}",
			old:     "spec: {hostPort: 'a:80', count: 5, ports: [{name: http}]}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 5}, tier: gold, ports: [{name: http, weight: 5}]}",
			owners: `{old v1alpha1: {f:spec: {f:count: {}}}, mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:tier: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:weight: {}}}}}}`,
		},
		{
			what: "nothing at the old version", version: "v1alpha1", manager: "old", fields: "{}",
			old:     "spec: {hostPort: 'a:80', ports: [{name: http}]}",
			current: "spec: {endpoint: {host: a, port: 80}, tier: gold, ports: [{name: http, weight: 5}]}",
			owners: `{mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:tier: {}, f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:weight: {}}}}}}`,
		},
		{
			what: "one of two that are preserved at v1beta1", version: "v1", manager: "new", fields: "spec: {ports: [{name: http, weight: 5}]}",
			// For the API server, preserved data is one field, which still exists. So the tier
			// stays, without an owner.
			old:     "spec: {hostPort: 'a:80', ports: [{name: http}]}",
			current: "spec: {endpoint: {host: a, port: 80}, tier: gold, ports: [{name: http, weight: 5}]}",
			owners: `{mid v1beta1: {f:spec: {f:address: {f:host: {}}}},
				new v1: {f:spec: {f:ports: {'k:{"name":"http"}': {.: {}, f:name: {}, f:weight: {}}}}}}`,
		},
		{
			what: "without what is preserved", version: "v1", manager: "new", fields: "spec: {team: blue}",
			old:     "spec: {hostPort: 'a:80', team: blue}",
			current: "spec: {endpoint: {host: a, port: 80}, team: blue, tier: gold}",
			owners:  "{mid v1beta1: {f:spec: {f:address: {f:host: {}}}}, new v1: {f:spec: {f:team: {}}}}",
		},
	} {
		step.play(t, k)
	}
}

// testApplyPreserved: a manager applies preserved data at the old version, as in a manifest that
// was read from the cluster, and owns it.
func testApplyPreserved(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "kept")
	applied{
		what: "at the new version", version: "v1", manager: "new", fields: "spec: {tier: gold, team: a}",
		old: "spec: {team: a}", current: "spec: {tier: gold, team: a}",
		owners: "{new v1: {f:spec: {f:tier: {}, f:team: {}}}}",
	}.play(t, k)
	const name = "conversion-operator.io/v1.gadgets.kept.example.com"
	annotation := fmt.Sprintf("metadata: {annotations: {%s: '%s'}}", name, k.get(t, "v1alpha1", "one").GetAnnotations()[name])
	for _, step := range []applied{
		{
			what: "what is preserved", version: "v1alpha1", manager: "old", fields: "{" + annotation + ", spec: {count: 1}}",
			old: "spec: {team: a, count: 1}", current: "spec: {tier: gold, team: a, scaling: {replicas: 1}}",
			owners: `{new v1: {f:spec: {f:tier: {}, f:team: {}}},
				old v1alpha1: {f:metadata: {f:annotations: {f:conversion-operator.io/v1.gadgets.kept.example.com: {}}}, f:spec: {f:count: {}}}}`,
		},
		{
			what: "another value", version: "v1", manager: "new", fields: "spec: {tier: silver, team: a}",
			conflict: `Apply failed with 1 conflict: conflict with "old": .metadata.annotations.conversion-operator.io/v1.gadgets.kept.example.com`,
			old:      "spec: {team: a, count: 1}", current: "spec: {tier: gold, team: a, scaling: {replicas: 1}}",
			owners: `{new v1: {f:spec: {f:tier: {}, f:team: {}}},
				old v1alpha1: {f:metadata: {f:annotations: {f:conversion-operator.io/v1.gadgets.kept.example.com: {}}}, f:spec: {f:count: {}}}}`,
		},
		{
			what: "another value by force", version: "v1", manager: "new", fields: "spec: {tier: silver, team: a}", force: true,
			old: "spec: {team: a, count: 1}", current: "spec: {tier: silver, team: a, scaling: {replicas: 1}}",
			owners: "{new v1: {f:spec: {f:tier: {}, f:team: {}}}, old v1alpha1: {f:spec: {f:count: {}}}}",
		},
		{
			what: "what was preserved once", version: "v1alpha1", manager: "old", fields: "{" + annotation + ", spec: {count: 1}}",
			conflict: `Apply failed with 1 conflict: conflict with "new": .spec.tier`,
			old:      "spec: {team: a, count: 1}", current: "spec: {tier: silver, team: a, scaling: {replicas: 1}}",
			owners: "{new v1: {f:spec: {f:tier: {}, f:team: {}}}, old v1alpha1: {f:spec: {f:count: {}}}}",
		},
		{
			what: "without it", version: "v1alpha1", manager: "old", fields: "spec: {count: 2}",
			old: "spec: {team: a, count: 2}", current: "spec: {tier: silver, team: a, scaling: {replicas: 2}}",
			owners: "{new v1: {f:spec: {f:tier: {}, f:team: {}}}, old v1alpha1: {f:spec: {f:count: {}}}}",
		},
	} {
		step.play(t, k)
	}
}

// testApplyEmptied: a manager removes its only field at the old version. When the API server reads
// the object at that version, spec becomes null. The preserved data of spec stays in the object.
func testApplyEmptied(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "nothing")
	const labelled = "old v1alpha1: {f:metadata: {f:labels: {f:a: {}}}}"
	for _, step := range []applied{
		{
			what: "a label at the old version", version: "v1alpha1", manager: "old", fields: "metadata: {labels: {a: b}}",
			old: "{}", current: "{}", owners: "{" + labelled + "}",
		},
		{
			what: "two fields at the new version", version: "v1", manager: "new", fields: "spec: {tier: gold, team: a}",
			old: "spec: {team: a}", current: "spec: {tier: gold, team: a}", owners: "{" + labelled + ", new v1: {f:spec: {f:tier: {}, f:team: {}}}}",
		},
		{
			what: "the one that the old version does not have", version: "v1", manager: "new", fields: "spec: {tier: silver}",
			old: "spec: {}", current: "spec: {tier: silver}", owners: "{" + labelled + ", new v1: {f:spec: {f:tier: {}}}}",
		},
	} {
		step.play(t, k)
	}
}

// testRetiredVersion retires a version at which managers applied. One of them continues at the new
// version. The other one's fields remain its own as long as the version exists, served or not.
// After the removal, every apply fails until managedFields no longer name the version.
func testRetiredVersion(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "retired")
	for _, step := range []applied{
		{
			what: "at the old version", version: "v1alpha1", manager: "moving", fields: "spec: {hostPort: 'a:80', team: a}",
			old: "spec: {hostPort: 'a:80', team: a}", current: "spec: {endpoint: {host: a, port: 80}, team: a}",
			owners: "{moving v1alpha1: {f:spec: {f:hostPort: {}, f:team: {}}}}",
		},
		{
			what: "at the old version again", version: "v1alpha1", manager: "staying", fields: "spec: {count: 1, legacy: {a: 1}}",
			old:     "spec: {hostPort: 'a:80', team: a, count: 1, legacy: {a: 1}}",
			current: "spec: {endpoint: {host: a, port: 80}, team: a, scaling: {replicas: 1}}",
			owners:  "{moving v1alpha1: {f:spec: {f:hostPort: {}, f:team: {}}}, staying v1alpha1: {f:spec: {f:count: {}, f:legacy: {f:a: {}}}}}",
		},
		{
			what: "moving on, with one field less", version: "v1", manager: "moving", fields: "spec: {endpoint: {host: a, port: 80}}",
			old:     "spec: {hostPort: 'a:80', count: 1, legacy: {a: 1}}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 1}}",
			owners:  "{moving v1: {f:spec: {f:endpoint: {f:host: {}, f:port: {}}}}, staying v1alpha1: {f:spec: {f:count: {}, f:legacy: {f:a: {}}}}}",
		},
	} {
		step.play(t, k)
	}
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false })
	k.awaitNotServed(t, "v1alpha1")
	_, err := k.apply(t, "v1", "moving", "spec: {endpoint: {host: b, port: 80}}", false)
	expect.NoError(t, err)
	_, err = k.apply(t, "v1", "moving", "spec: {endpoint: {host: b, port: 80}, scaling: {replicas: 2}}", false)
	wantErrors(t, map[string]error{"apply": err}, `conflict with "staying": .spec.count`)

	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	expect.Success(t, "nobody can apply", func(context.Context) error {
		_, err := k.apply(t, "v1", "moving", "spec: {endpoint: {host: c, port: 80}}", true)
		if err == nil || !strings.Contains(err.Error(), "request to convert CR to an invalid group/version: "+k.group+"/v1alpha1") {
			return fmt.Errorf("an apply was answered with: %w", err)
		}
		return nil
	})
	k.clearManagers(t, "v1alpha1")
	_, err = k.apply(t, "v1", "moving", "spec: {endpoint: {host: d, port: 80}, scaling: {replicas: 2}}", true)
	expect.NoError(t, err)
	one := k.get(t, "v1", "one")
	wantFields(t, "in the end", one, "spec: {endpoint: {host: d, port: 80}, scaling: {replicas: 2}}")
	wantOwners(t, "in the end", one, "{moving v1: {f:spec: {f:endpoint: {f:host: {}, f:port: {}}, f:scaling: {f:replicas: {}}}}}")
}

// clearManagers removes the entries of a version from managedFields.
func (k *kind) clearManagers(t *testing.T, version string) {
	t.Helper()
	var patch []string
	for i, entry := range k.get(t, "v1", "one").GetManagedFields() {
		if entry.APIVersion == k.group+"/"+version {
			patch = append(patch, fmt.Sprintf(`{"op": "remove", "path": "/metadata/managedFields/%d"}`, i))
		}
	}
	text := []byte("[" + strings.Join(patch, ", ") + "]")
	_, err := k.at("v1").Patch(t.Context(), "one", types.JSONPatchType, text, metav1.PatchOptions{})
	expect.NoError(t, err)
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
	_, kept := k.get(t, "v1alpha1", "one").GetAnnotations()[conversion.AnnotationName(k.crd, "v1")]
	expect.Equal(t, "the tier is preserved at v1alpha1", true, kept)
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
