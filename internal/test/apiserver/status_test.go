//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
