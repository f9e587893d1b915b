// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestReferences(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"apiVersion and kind":  {"spec: {a: [{ref: {apiVersion: example.com/v1beta1, kind: CronTab}}]}", ".spec.a[0].ref"},
		"several":              {"spec: {b: {apiVersion: example.com/v1beta1, kind: CronTab}, a: {apiVersion: example.com/v1beta1, kind: CronTab}}", ".spec.a .spec.b"},
		"nested":               {"spec: {apiVersion: example.com/v1beta1, kind: CronTab, ref: {apiVersion: example.com/v1beta1, kind: CronTab}}", ".spec .spec.ref"},
		"group, version, kind": {"spec: {target: {group: example.com, version: v1beta1, kind: CronTab}}", ".spec.target"},
		"only a version":       {"spec: {target: {version: v1beta1, kind: CronTab}}", ""},
		"only a group":         {"spec: {target: {group: example.com, kind: CronTab}}", ""},
		"an inventory":         {"status: {inventory: {entries: [{id: ns_name_example.com_CronTab, v: v1beta1}]}}", ".status.inventory.entries[0]"},
		"another inventory":    {"status: {inventory: {entries: [{id: example.com_CronTab, v: v1beta1}, {id: ns_name_example.com_CronTab}]}}", ""},
		"kinds of Kyverno":     {"spec: {match: {kinds: [CronTab, example.com/v1beta1/CronTab, example.com/v1/CronTab, example.com/v1beta1/CronTab/status]}}", ".spec.match.kinds[1] .spec.match.kinds[3]"},
		"text":                 {"spec: {text: 'apiVersion: example.com/v1beta1', list: [example.com/v1beta1/CronTab], apiVersion: 1, kind: {}}", ""},
		"a manifest":           {`data: {a.yaml: "kind: ConfigMap\napiVersion: v1\n---\napiVersion: example.com/v1beta1\nkind: CronTab\n"}`, ".data.a.yaml"},
		"a list in JSON":       {`data: {a: "{\"apiVersion\": \"v1\", \"kind\": \"List\",\n\"items\": [{\"apiVersion\": \"example.com/v1beta1\", \"kind\": \"CronTab\"}]}"}`, ".data.a"},
		"a template":           {`data: {a: "apiVersion: example.com/v1beta1\nkind: CronTab\n{{ if }}\n"}`, ""},
		"a copy":               {"data: {apiVersion: example.com/v1beta1, kind: CronTab, spec: {}}", ".data"},
		"metadata":             {"metadata: {name: x, annotations: {apiVersion: example.com/v1beta1, kind: CronTab}, ownerReferences: [{apiVersion: example.com/v1beta1, kind: CronTab}]}", ""},
		"records":              {"status: {operationState: {a: {apiVersion: example.com/v1beta1, kind: CronTab}}, history: [{apiVersion: example.com/v1beta1, kind: CronTab}]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			content := map[string]any{}
			expect.NoError(t, yaml.Unmarshal([]byte(test.content), &content))
			var got []string
			for _, dependent := range Sources[0].In(target(t), content) {
				got = append(got, dependent.Field)
			}
			expect.Equal(t, "fields", test.want, strings.Join(got, " "))
		})
	}
}

func TestContracts(t *testing.T) {
	crd := definition("v1beta1:s", "v1:sS")
	crd.Labels = map[string]string{
		"cluster.x-k8s.io/v1beta1": "v1alpha1_v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta1_v1", "cluster.x-k8s.io/v1beta3": "v1", "cluster.x-k8s.io/provider": "x", "other": "v1beta1"}
	var got []string
	for _, dependent := range target(t).Contracts(crd) {
		got = append(got, strings.Join([]string{string(dependent.Impact), dependent.Version, dependent.Field, dependent.Effect}, " "))
	}
	expect.Equal(t, "labels", []string{
		"Breaks v1beta1 .metadata.labels[cluster.x-k8s.io/v1beta1] Cluster API requests objects at the latest version of the label, and does not find the kind",
		"Harmless v1beta1 .metadata.labels[cluster.x-k8s.io/v1beta2] Cluster API uses the latest version of the label, v1",
	}, got)
}

// TestAutoscalers: an autoscaler reads the scale at the preferred version, whatever version it names.
func TestAutoscalers(t *testing.T) {
	const lost = "the autoscaler finds no scale: it reads that at the preferred version, whatever version it names, and v1 has no subresource scale"
	for name, test := range map[string]struct {
		crd             *apiextensionsv1.CustomResourceDefinition
		goes, names     string
		version, effect string
		impact          Impact
	}{
		"a scale at both":                        {definition("v1beta1:sr", "v1:sSr"), "v1beta1", "example.com/v1beta1", "v1beta1", "the autoscaler still finds its target, by group and kind", Harmless},
		"no scale at all":                        {definition("v1beta1:s", "v1:sS"), "v1beta1", "example.com/v1beta1", "v1beta1", "the autoscaler still finds its target, by group and kind", Harmless},
		"another version":                        {definition("v1beta1:sr", "v1:sSr"), "v1beta1", "example.com/v1", "", "", ""},
		"lost before":                            {definition("v1beta1:sr", "v1:sS"), "v1beta1", "example.com/v1beta1", "v1beta1", lost, Breaks},
		"lost before, at the version that stays": {definition("v1beta1:sr", "v1:sS"), "v1beta1", "example.com/v1", "v1", lost, Breaks},
		"lost with the preferred version":        {definition("v1:sS", "v2:sr"), "v2", "example.com/v1", "v2", lost, Breaks},
		"another group":                          {definition("v1:sS", "v2:sr"), "v2", "example.org/v1", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := NewTarget(test.crd, []string{test.goes})
			expect.NoError(t, err)
			reference := map[string]any{"apiVersion": test.names, "kind": "CronTab", "name": "x"}
			found := Sources[0].In(target, map[string]any{"spec": map[string]any{"scaleTargetRef": reference}})
			if test.effect == "" {
				expect.Equal(t, "dependents", 0, len(found))
				return
			}
			expect.Equal(t, "dependents", []string{test.version, test.effect, string(test.impact)}, []string{found[0].Version, found[0].Effect, string(found[0].Impact)})
		})
	}
	target, err := NewTarget(definition("v1beta1:sr", "v1:sS"), []string{"v1beta1"})
	expect.NoError(t, err)
	expect.Equal(t, "other references to the version that stays", 0, len(Sources[4].In(target, map[string]any{"spec": map[string]any{"apiVersion": "example.com/v1", "kind": "CronTab"}})))
}

// TestDepth: an object that is nested very deeply is read up to a limit.
func TestDepth(t *testing.T) {
	var value any = map[string]any{"apiVersion": "example.com/v1beta1", "kind": "CronTab"}
	for range 10 * mostDepth {
		value = []any{value}
	}
	if found := Sources[0].In(target(t), map[string]any{"spec": value}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestManagers(t *testing.T) {
	managers := target(t).Managers()
	at := func(time string) *metav1.Time {
		parsed := &metav1.Time{}
		expect.NoError(t, parsed.UnmarshalQueryParameter(time))
		return parsed
	}
	old := func(manager, time string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "example.com/v1beta1", Time: at(time)}
	}
	for _, name := range []string{"a", "b"} {
		managers.Add(Object{Kind: "CronTab", Name: name}, []metav1.ManagedFieldsEntry{
			old("two", "2026-01-02T00:00:00Z"), old("two", "2026-01-01T00:00:00Z"), {Manager: "new", Operation: "Update", APIVersion: "example.com/v1"},
		})
	}
	found := managers.Dependents()
	if len(found) != 1 || found[0].Count != 2 || found[0].Last != "2026-01-02T00:00:00Z" || found[0].Place() != "two (Update), CronTab a, 2 in total" {
		t.Errorf("found %+v", found)
	}
	for i := range 2 * mostManagers {
		managers.Add(Object{Name: "c"}, []metav1.ManagedFieldsEntry{old(strings.Repeat("x", i+1), "2026-01-01T00:00:00Z")})
	}
	expect.Equal(t, "managers named, and others", [2]int{mostManagers, mostManagers + 1}, [2]int{len(managers.Dependents()), managers.Others})
}

func TestReaders(t *testing.T) {
	const log = `{"stage":"RequestReceived","verb":"get","userAgent":"a","user":{"username":"u"},"objectRef":{"resource":"crontabs","namespace":"n","name":"x","apiGroup":"example.com","apiVersion":"v1beta1"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"a","user":{"username":"u"},"requestReceivedTimestamp":"2026-01-01T00:00:00.5Z","objectRef":{"resource":"crontabs","namespace":"n","name":"x","apiGroup":"example.com","apiVersion":"v1beta1"}}
{"stage":"ResponseStarted","verb":"watch","userAgent":"b","user":{"username":"u"},"requestReceivedTimestamp":"2026-01-01T00:00:00Z","objectRef":{"resource":"crontabs","apiGroup":"example.com","apiVersion":"v1beta1"}}
{"stage":"ResponseComplete","verb":"watch","userAgent":"b","user":{"username":"u"},"requestReceivedTimestamp":"2026-01-01T00:00:00Z","objectRef":{"resource":"crontabs","apiGroup":"example.com","apiVersion":"v1beta1"}}
{"stage":"ResponseComplete","verb":"list","userAgent":"c","user":{"username":"u"},"objectRef":{"resource":"crontabs","apiGroup":"example.com","apiVersion":"v1"}}
{"stage":"ResponseComplete","verb":"list","userAgent":"d","user":{"username":"u"},"objectRef":{"resource":"crontabs","apiGroup":"example.org","apiVersion":"v1beta1"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"e","user":{"username":"u"}}
`
	found, others, err := target(t).Readers(strings.NewReader(log))
	expect.NoError(t, err)
	expect.Equal(t, "others", 0, others)
	var got []string
	for _, dependent := range found {
		got = append(got, strings.Join([]string{dependent.Place(), dependent.Version, dependent.Last}, " "))
	}
	want := []string{"u (b) v1beta1 2026-01-01T00:00:00Z", "u (a), CronTab n/x v1beta1 2026-01-01T00:00:00Z"}
	expect.Equal(t, "readers", want, got)
	_, _, err = target(t).Readers(strings.NewReader("{}\n{"))
	expect.Equal(t, "error", "read event 2 of the audit log: unexpected EOF", fmt.Sprint(err))
}
