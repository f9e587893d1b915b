// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const objectsYAML = `
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: converter, namespace: system, labels: {app: converter}}
  spec: {template: {spec: {containers: [{name: converter, image: ours, args: [serve], ports: [{name: https, containerPort: 9443, protocol: TCP}]}]}}}
- apiVersion: v1
  kind: Service
  metadata: {name: converter, namespace: system}
  spec: {ports: [{port: 443, protocol: TCP}]}
`

func read[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), &value))
	return value
}

// TestApply: what is patched, and nothing else, is another.
func TestApply(t *testing.T) {
	cases := map[string]struct {
		patches string
		change  func(deployment, service map[string]any)
	}{
		"nothing": {"[]", func(_, _ map[string]any) {}},
		"a strategic merge patch adds a container and keeps the other": {
			"[{target: {kind: Deployment}, patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: any}, spec: {template: {spec: {containers: [{name: side, image: theirs}]}}}}'}]",
			func(deployment, _ map[string]any) {
				pod := at(deployment, "spec", "template", "spec")
				pod["containers"] = append([]any{map[string]any{"name": "side", "image": "theirs"}}, pod["containers"].([]any)...)
			},
		},
		"a strategic merge patch merges a container by its name": {
			"[{target: {kind: Deployment}, patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: any}, spec: {template: {spec: {containers: [{name: converter, tty: true}]}}}}'}]",
			func(deployment, _ map[string]any) {
				at(deployment, "spec", "template", "spec")["containers"].([]any)[0].(map[string]any)["tty"] = true
			},
		},
		"a strategic merge patch names its object": {
			"[{patch: '{apiVersion: v1, kind: Service, metadata: {name: converter, namespace: system}, spec: {type: NodePort}}'}]",
			func(_, service map[string]any) { at(service, "spec")["type"] = "NodePort" },
		},
		"a JSON patch in YAML": {
			`[{target: {kind: Service}, patch: "- op: add\n  path: /spec/type\n  value: NodePort"}]`,
			func(_, service map[string]any) { at(service, "spec")["type"] = "NodePort" },
		},
		"a JSON patch in YAML that looks like JSON": {
			"[{target: {kind: Service}, patch: '[{op: add, path: /spec/type, value: NodePort}]'}]",
			func(_, service map[string]any) { at(service, "spec")["type"] = "NodePort" },
		},
		"one after the other, on what regular expressions find": {
			"[{target: {kind: Deployment|Service}, patch: '[{op: add, path: /spec/paused, value: true}]'}, {target: {name: conv.*}, patch: '[{op: remove, path: /spec}]'}]",
			func(deployment, service map[string]any) { delete(deployment, "spec"); delete(service, "spec") },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, want := read[[]map[string]any](t, objectsYAML), read[[]map[string]any](t, objectsYAML)
			c.change(want[0], want[1])
			got := objects
			for _, patch := range read[[]v1alpha1.Patch](t, c.patches) {
				var err error
				got, err = Apply(got, patch)
				expect.NoError(t, err)
			}
			expect.Equal(t, "objects", normalized(t, want), normalized(t, got))
			expect.Equal(t, "what came in was changed", read[[]map[string]any](t, objectsYAML), objects)
		})
	}
}

func at(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object = object[name].(map[string]any)
	}
	return object
}

// normalized has all numbers of one type.
func normalized(t *testing.T, objects []map[string]any) []map[string]any {
	t.Helper()
	text, err := yaml.Marshal(objects)
	expect.NoError(t, err)
	return read[[]map[string]any](t, string(text))
}

// TestRefused: each mistake is told in one line.
func TestRefused(t *testing.T) {
	cases := map[string]struct{ patch, want string }{
		"no YAML":                  {"{target: {kind: Deployment}, patch: 'a: [b'}", "it is neither a JSON patch nor a strategic merge patch; the latter has apiVersion, kind and metadata.name even if it has a target"},
		"no patch":                 {"{target: {kind: Deployment}, patch: '{spec: {replicas: 3}}'}", "it is neither a JSON patch nor a strategic merge patch; the latter has apiVersion, kind and metadata.name even if it has a target"},
		"an unknown operation":     {"{target: {kind: Deployment}, patch: '[{op: shake, path: /spec}]'}", "Unexpected kind: shake"},
		"a path that is not there": {"{target: {kind: Deployment}, patch: '[{op: remove, path: /spec/paused}]'}", "error in remove for path: '/spec/paused': Unable to remove nonexistent key: paused: missing value"},
		"two patches":              {"{target: {kind: Deployment}, patch: \"{apiVersion: v1, kind: A, metadata: {name: a}}\\n---\\n{apiVersion: v1, kind: B, metadata: {name: b}}\"}", "it has several documents: write a patch for each of them"},
		"a JSON patch for nothing": {"{patch: '[{op: remove, path: /spec}]'}", "a JSON patch needs a target"},
		"another object":           {"{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}'}", "its object does not exist: give it a target that selects one of Deployment converter, Service converter"},
		"a target that is none":    {"{target: {kind: StatefulSet}, patch: '[]'}", "target selects none of Deployment converter, Service converter"},
		"no regular expression":    {"{target: {kind: 'D('}, patch: '[]'}", "target: error parsing regexp: missing closing ): `^(?:D()$`"},
		"it deletes":               {"{target: {kind: Deployment}, patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, $patch: delete}'}", "it deletes an object that the converter needs"},
		"it makes another kind":    {"{target: {kind: Deployment}, patch: '[{op: replace, path: /kind, value: StatefulSet}]'}", "it changes apiVersion or kind of an object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Apply(read[[]map[string]any](t, objectsYAML), read[v1alpha1.Patch](t, c.patch))
			if err == nil {
				t.Fatal("it was applied")
			}
			expect.Equal(t, "error", c.want, err.Error())
		})
	}
}

// TestConcurrently: policies are reconciled at the same time, and kustomize has a
// schema that they share. Run it with -race.
func TestConcurrently(t *testing.T) {
	objects := read[[]map[string]any](t, objectsYAML)
	patches := read[[]v1alpha1.Patch](t, `
- {target: {kind: Deployment}, patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {containers: [{name: converter, tty: true}]}}}}'}
- {target: {kind: Deployment}, patch: '[{op: add, path: /spec/replicas, value: 3}]'}
`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, patch := range patches {
				if _, err := Apply(objects, patch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
