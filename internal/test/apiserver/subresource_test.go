//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// status returns the status at a version for a phase and a number of ready replicas.
func status(version, phase string, ready int) string {
	if version == "v1" {
		return fmt.Sprintf("status: {phase: %s, scaling: {ready: %d}}", phase, ready)
	}
	return fmt.Sprintf("status: {phase: %s, ready: %d}", phase, ready)
}

// testStatus writes the status at every version with every method. It does not change the spec, and
// writes of the object do not change the status.
func testStatus(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "status")
	for _, storage := range []string{"v1", "v1beta1"} {
		if storage != "v1" {
			k.store(t, storage)
		}
		for _, version := range versions {
			name := storage + "-" + version
			k.create(t, "v1", name, spec("v1", "a"))
			k.mergePatch(t, "v1", name, "status: {selector: app=x}", "status")

			k.mergePatch(t, version, name, status(version, "Merged", 1), "status")
			k.wantStatus(t, name, "Merged", 1)
			k.replaceStatus(t, version, name, status(version, "Updated", 2))
			k.wantStatus(t, name, "Updated", 2)
			k.jsonPatchStatus(t, version, name)
			k.wantStatus(t, name, "Patched", 2)
			applied := k.gadget(t, version, name, status(version, "Applied", 3))
			_, err := k.at(version).ApplyStatus(t.Context(), name, applied, metav1.ApplyOptions{FieldManager: "applier", Force: true})
			expect.NoError(t, err)
			k.wantStatus(t, name, "Applied", 3)
			k.mergePatch(t, version, name, status(version, "Lost", 9))
			k.wantStatus(t, name, "Applied", 3)
		}
	}
}

// replaceStatus reads an object, and updates its status together with another spec.
func (k *kind) replaceStatus(t *testing.T, version, name, status string) {
	t.Helper()
	object := k.gadget(t, version, name, "{spec: {team: lost}, "+status+"}")
	read, err := k.at(version).Get(t.Context(), name, metav1.GetOptions{}, "status")
	expect.NoError(t, err)
	object.Object["metadata"] = read.Object["metadata"]
	if version == "v1" {
		expect.NoError(t, unstructured.SetNestedField(object.Object, "app=x", "status", "selector"))
	}
	_, err = k.at(version).UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
	expect.NoError(t, err)
}

func (k *kind) jsonPatchStatus(t *testing.T, version, name string) {
	t.Helper()
	patch := `[{"op": "test", "path": "/status/phase", "value": "Updated"}, {"op": "replace", "path": "/status/phase", "value": "Patched"}]`
	_, err := k.at(version).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}, "status")
	expect.NoError(t, err)
}

// wantStatus reads the gadget at every version: its spec is unchanged, including the selector,
// which only v1 has.
func (k *kind) wantStatus(t *testing.T, name, phase string, ready int) {
	t.Helper()
	for _, read := range versions {
		object, err := k.at(read).Get(t.Context(), name, metav1.GetOptions{}, "status")
		expect.NoError(t, err)
		want := status(read, phase, ready)
		if read == "v1" {
			want = strings.TrimSuffix(want, "}") + ", selector: app=x}"
		}
		wantFields(t, name+" at "+read, object, "{"+seen("v1", read, "a")+", "+want+"}")
	}
}

// testScale scales at every version, with different paths of replicas. API servers do not support
// applying the scale of custom resources.
func testScale(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "scale")
	k.create(t, "v1", "one", spec("v1", "a"))
	k.mergePatch(t, "v1", "one", "status: {selector: app=x, scaling: {ready: 2}}", "status")
	k.wantScale(t, 3)
	replicas := int64(3)
	for _, version := range versions {
		replicas++
		k.mergePatch(t, version, "one", fmt.Sprintf("spec: {replicas: %d}", replicas), "scale")
		k.wantScale(t, replicas)

		replicas++
		scale, err := k.at(version).Get(t.Context(), "one", metav1.GetOptions{}, "scale")
		expect.NoError(t, err)
		expect.NoError(t, unstructured.SetNestedField(scale.Object, replicas, "spec", "replicas"))
		_, err = k.at(version).Update(t.Context(), scale, metav1.UpdateOptions{}, "scale")
		expect.NoError(t, err)
		k.wantScale(t, replicas)

		replicas++
		patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/replicas", "value": %d}]`, replicas)
		_, err = k.at(version).Patch(t.Context(), "one", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}, "scale")
		expect.NoError(t, err)
		k.wantScale(t, replicas)
	}
	want := strings.Replace(spec("v1", "a"), "replicas: 3", fmt.Sprintf("replicas: %d", replicas), 1)
	wantFields(t, "what was scaled", k.get(t, "v1", "one"), "{"+want+", status: {selector: app=x, scaling: {ready: 2}}}")
}

func (k *kind) wantScale(t *testing.T, replicas int64) {
	t.Helper()
	for _, read := range versions {
		scale, err := k.at(read).Get(t.Context(), "one", metav1.GetOptions{}, "scale")
		expect.NoError(t, err)
		want := fmt.Sprintf("{spec: {replicas: %d}, status: {replicas: 2}}", replicas)
		if read == "v1" {
			want = strings.Replace(want, "replicas: 2", "replicas: 2, selector: app=x", 1)
		}
		wantFields(t, "scale at "+read, scale, want)
	}
}

// testTables reads tables as kubectl does: every version has its own columns.
func testTables(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "tables")
	k.create(t, "v1", "one", spec("v1", "a"))
	k.mergePatch(t, "v1", "one", "status: {scaling: {ready: 2}}", "status")
	k.create(t, "v1alpha1", "two", spec("v1alpha1", "b"))
	for version, want := range map[string][][]any{
		"v1alpha1": {{"Name", "Address", "Mode"}, {"one", "a:8080", "Fast"}, {"two", "b:8080", "Fast"}},
		"v1beta1":  {{"Name", "Host", "Hint"}, {"one", "a", nil}, {"two", "b", nil}},
		"v1":       {{"Name", "Host", "Tier", "Ready"}, {"one", "a", "gold", float64(2)}, {"two", "b", nil, nil}},
	} {
		if diff := cmp.Diff(want, k.table(t, version)); diff != "" {
			t.Errorf("table of %s (-want +got):\n%s", version, diff)
		}
	}
}

// table returns the table of all gadgets: column names, and rows.
func (k *kind) table(t *testing.T, version string) [][]any {
	t.Helper()
	client, err := rest.HTTPClientFor(k.config)
	expect.NoError(t, err)
	address := fmt.Sprintf("%s/apis/%s/%s/namespaces/%s/%s", strings.TrimSuffix(k.config.Host, "/"), k.group, version, namespace, plural)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	expect.NoError(t, err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := client.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	table := metav1.Table{}
	expect.NoError(t, json.Unmarshal(body, &table))
	var heads []any
	for _, column := range table.ColumnDefinitions {
		heads = append(heads, column.Name)
	}
	rows := [][]any{heads}
	for _, row := range table.Rows {
		rows = append(rows, row.Cells)
	}
	return rows
}
