//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// testOldClients creates fifty gadgets at the new version. A client at each old version reads them,
// changes two fields, and writes the whole object. Nothing else changes, in any storage version and
// any order.
func testOldClients(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "clients")
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]map[string]any{}
	for i := range 50 {
		name := fmt.Sprintf("random-%d", i)
		object := k.gadget(t, "v1", name, "{}")
		object.Object["spec"] = randomSpec(random)
		created, err := k.at("v1").Create(t.Context(), object, metav1.CreateOptions{})
		expect.NoError(t, err)
		want[name] = created.Object["spec"].(map[string]any)
	}
	for round, storage := range []string{"v1", "v1alpha1", "v1beta1"} {
		k.store(t, storage)
		for name, spec := range want {
			for _, turn := range random.Perm(2) {
				version := versions[turn]
				replicas := int64(random.IntN(100))
				k.edit(t, version, name, fmt.Sprintf("%s-%d", version, round), replicas)
				spec["team"] = fmt.Sprintf("%s-%d", version, round)
				spec["scaling"] = map[string]any{"replicas": replicas}
			}
			if diff := cmp.Diff(spec, k.get(t, "v1", name).Object["spec"]); diff != "" {
				t.Errorf("%s at v1, stored at %s (-want +got):\n%s", name, storage, diff)
			}
		}
	}
}

// edit reads, changes and writes the whole object.
func (k *kind) edit(t *testing.T, version, name, team string, replicas int64) {
	t.Helper()
	object := k.get(t, version, name)
	field := map[string]string{"v1alpha1": "count", "v1beta1": "replicas"}[version]
	expect.NoError(t, unstructured.SetNestedField(object.Object, team, "spec", "team"))
	expect.NoError(t, unstructured.SetNestedField(object.Object, replicas, "spec", field))
	_, err := k.at(version).Update(t.Context(), object, metav1.UpdateOptions{})
	expect.NoError(t, err)
}

// randomSpec returns a spec of v1 with some fields. Some hosts contain a colon, and cannot be
// separated from the port in the string of v1alpha1.
func randomSpec(random *rand.Rand) map[string]any {
	spec := map[string]any{}
	endpoint := map[string]any{}
	maybe := func(fields map[string]any, name string, value any) {
		if random.IntN(3) > 0 {
			fields[name] = value
		}
	}
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	maybe(endpoint, "host", pick("a.example.com", "fe80::1", "", ":", "über", "a:80", "{host}"))
	maybe(endpoint, "port", int64(random.IntN(70000)-10))
	maybe(spec, "endpoint", endpoint)
	maybe(spec, "mode", pick("Express", "Standard"))
	maybe(spec, "tier", pick("gold", "", "line\nbreak", `{"quoted": "~/"}`, "\u2028<&>"))
	maybe(spec, "limit", random.Int64())
	var ports []any
	for i := range random.IntN(4) {
		port := map[string]any{"name": fmt.Sprintf("%s%d", pick("p", "a/b~", `"`, "é", "]"), i)}
		maybe(port, "number", int64(i))
		maybe(port, "weight", int64(random.IntN(9)))
		ports = append(ports, port)
	}
	if ports != nil {
		spec["ports"] = ports
	}
	return spec
}
