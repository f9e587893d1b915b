//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// The hub v2 has a status field that v1 lacks. v1alpha1 lacks the status and the status
// subresource.
var preservedStatusVersions = versionsOf("v2",
	schemas{name: "v1alpha1", spec: "properties: {size: {type: integer}}"},
	schemas{name: "v1", spec: "properties: {size: {type: integer}}", status: "phase: {type: string}"},
	schemas{name: "v2", spec: "properties: {size: {type: integer}}", status: "phase: {type: string}, grant: {type: string}"})

const (
	preservedStatusRules = "{hub: v2, spokes: [{version: v1}, {version: v1alpha1}]}"
	// preservedPrefix begins the keys of annotations with preserved fields.
	preservedPrefix = "conversion-operator.io/"
)

// preserved returns an object's annotations with preserved fields.
func preserved(object *unstructured.Unstructured) map[string]string {
	found := maps.Clone(object.GetAnnotations())
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, preservedPrefix) })
	return found
}

// granted creates an object whose status was written at v2, by the status subresource.
func (k *kind) granted(t *testing.T, name, grant string) {
	t.Helper()
	k.create(t, "v2", name, "spec: {size: 1}")
	k.mergePatch(t, "v2", name, "status: {phase: Ready, grant: "+grant+"}", "status")
}

func (k *kind) wantGrant(t *testing.T, what, name, status string) {
	t.Helper()
	object := k.get(t, "v2", name)
	expect.Equal[any](t, "status at v2 "+what, fieldsOf(t, status), object.Object["status"])
}

// replaceAll acts as kubectl replace: it sends the whole object, with the name and these
// annotations as metadata.
func (k *kind) replaceAll(t *testing.T, version, name, fields string, annotations map[string]string) {
	t.Helper()
	object := k.gadget(t, version, name, fields)
	object.SetAnnotations(annotations)
	object.SetResourceVersion(k.get(t, version, name).GetResourceVersion())
	_, err := k.at(version).Update(t.Context(), object, metav1.UpdateOptions{})
	expect.NoError(t, err)
}

// testPreservedStatus: clients that may not write the status subresource can write objects. At both
// versions they cannot change status fields of the version that they use, but they can change those
// that it lacks. Writers of the status at the version that lacks fields cannot change these.
func testPreservedStatus(t *testing.T, s *apiServer) {
	k := s.install(t, "preservedstatus", preservedStatusVersions, preservedStatusRules)
	for _, storage := range []string{"v2", "v1"} {
		if storage != "v2" {
			k.store(t, storage)
		}
		name := "stored-" + storage
		k.granted(t, name, "none")
		read := k.get(t, "v1", name)
		annotations := preserved(read)
		if len(annotations) != 1 || !strings.Contains(annotations[conversion.AnnotationName(k.crd, "v2")], `"none"`) {
			t.Fatalf("annotations at v1: %v", annotations)
		}

		k.mergePatch(t, "v2", name, "status: {phase: Forged, grant: all}")
		k.wantGrant(t, "after its fields were written with the object", name, "{phase: Ready, grant: none}")
		read.SetAnnotations(nil)
		expect.NoError(t, unstructured.SetNestedField(read.Object, "Running", "status", "phase"))
		_, err := k.at("v1").UpdateStatus(t.Context(), read, metav1.UpdateOptions{})
		expect.NoError(t, err)
		k.wantGrant(t, "after a write of the status at v1, without the annotation", name, "{phase: Running, grant: none}")

		k.forge(t, "v1", name, "none", "all")
		k.wantGrant(t, "after the annotation was written with the object at v1", name, "{phase: Running, grant: all}")
		k.forge(t, "v1alpha1", name, "all", "more")
		k.wantGrant(t, "after the annotation was written with the object at v1alpha1", name, "{phase: Running, grant: more}")

		if storage == "v1" {
			k.forgeAtBirth(t, annotations)
		}
	}
}

// forge replaces a text in an object's annotations by a write of the object.
func (k *kind) forge(t *testing.T, version, name, from, to string) {
	t.Helper()
	forged := preserved(k.get(t, version, name))
	for key, text := range forged {
		forged[key] = strings.Replace(text, `"`+from+`"`, `"`+to+`"`, 1)
	}
	k.replaceAll(t, version, name, "{spec: {size: 1}, status: {phase: Forged}}", forged)
}

// forgeAtBirth creates an object with annotations, and without a status, which API servers drop at
// creation. They take effect at the first write of the status.
func (k *kind) forgeAtBirth(t *testing.T, annotations map[string]string) {
	t.Helper()
	object := k.gadget(t, "v1", "born", "spec: {size: 1}")
	object.SetAnnotations(annotations)
	_, err := k.at("v1").Create(t.Context(), object, metav1.CreateOptions{})
	expect.NoError(t, err)
	k.mergePatch(t, "v1", "born", "status: {phase: Ready}", "status")
	k.wantGrant(t, "of an object that was created with the annotation at v1", "born", "{phase: Ready, grant: none}")
}

// testPreservedStatusManifests applies old manifests at v1, with the methods of kubectl, to an
// object whose status has changed since.
func testPreservedStatusManifests(t *testing.T, s *apiServer) {
	k := s.install(t, "statusmanifests", preservedStatusVersions, preservedStatusRules)
	const manifest = "{spec: {size: 1}}"
	for _, storage := range []string{"v2", "v1"} {
		if storage != "v2" {
			k.store(t, storage)
		}
		for way, test := range map[string]struct {
			apply  func(name string, saved map[string]string)
			status string
		}{
			"replaced":            {func(name string, _ map[string]string) { k.replaceAll(t, "v1", name, manifest, nil) }, "{phase: Ready}"},
			"replaced-saved":      {func(name string, saved map[string]string) { k.replaceAll(t, "v1", name, manifest, saved) }, "{phase: Ready, grant: yesterday}"},
			"applied":             {func(name string, _ map[string]string) { k.clientApply(t, name, manifest, nil, nil) }, "{phase: Ready, grant: today}"},
			"applied-saved":       {func(name string, saved map[string]string) { k.clientApply(t, name, manifest, saved, saved) }, "{phase: Ready, grant: yesterday}"},
			"applied-saved-once":  {func(name string, saved map[string]string) { k.clientApply(t, name, manifest, saved, nil) }, "{phase: Ready}"},
			"server-applied":      {func(name string, _ map[string]string) { k.serverApply(t, name, manifest, nil) }, "{phase: Ready, grant: today}"},
			"server-applied-save": {func(name string, saved map[string]string) { k.serverApply(t, name, manifest, saved) }, "{phase: Ready, grant: yesterday}"},
		} {
			name := way + "-" + storage
			k.granted(t, name, "yesterday")
			saved := preserved(k.get(t, "v1", name))
			k.mergePatch(t, "v2", name, "status: {grant: today}", "status")
			test.apply(name, saved)
			k.wantGrant(t, "of what was "+name, name, test.status)
		}
	}
}

// testPreservedStatusHeld uses an admission policy instead of a webhook to keep annotations
// unchanged: neither forged nor old ones change the status then.
func testPreservedStatusHeld(t *testing.T, s *apiServer) {
	testenv.NeedMutatingPolicies(t, s.Kubeconfig)
	k := s.install(t, "statusheld", preservedStatusVersions, preservedStatusRules)
	k.holdPreserved(t)
	for _, storage := range []string{"v2", "v1"} {
		if storage != "v2" {
			k.store(t, storage)
		}
		name := "held-" + storage
		k.granted(t, name, "yesterday")
		saved := preserved(k.get(t, "v1", name))
		k.mergePatch(t, "v2", name, "status: {grant: today}", "status")
		for _, annotations := range []map[string]string{saved, nil, {preservedPrefix + "v2": "{}", preservedPrefix + "v3": "{}", "own": "x"}} {
			k.replaceAll(t, "v1", name, "{spec: {size: 1}, status: {phase: Forged}}", annotations)
			k.wantGrant(t, "after another annotation was written with the object at v1", name, "{phase: Ready, grant: today}")
		}
		expect.Equal(t, "own annotation at v2", "x", k.get(t, "v2", name).GetAnnotations()["own"])
		k.mergePatch(t, "v2", name, "status: {grant: tomorrow}", "status")
		k.wantGrant(t, "after a write of the status at v2", name, "{phase: Ready, grant: tomorrow}")
	}
}

// holdPreserved waits until the policy is in force: until it reverts a new annotation. An
// annotation that was sent before stays forever.
func (k *kind) holdPreserved(t *testing.T) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(k.Kubeconfig)
	expect.NoError(t, err)
	policy, binding := k.documentedPolicy(t)
	_, err = clients.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = clients.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	expect.NoError(t, err)
	k.create(t, "v1", "marker", "{}")
	expect.Success(t, "annotations are held", func(ctx context.Context) error {
		sent := fmt.Sprint(time.Now().UnixNano())
		patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"%sv9": "%s"}}}`, preservedPrefix, sent)
		object, err := k.at("v1").Patch(ctx, "marker", types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil && object.GetAnnotations()[preservedPrefix+"v9"] == sent {
			err = errors.New("the annotation arrived")
		}
		return err
	})
}

// documentedPolicy returns the documented admission policy for this kind.
func (k *kind) documentedPolicy(t *testing.T) (policy *admissionregistrationv1.MutatingAdmissionPolicy, binding *admissionregistrationv1.MutatingAdmissionPolicyBinding) {
	t.Helper()
	page, err := os.ReadFile("../../../api/docs/hardening.md")
	expect.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "## Preserved status")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	text = strings.NewReplacer("crontabs.example.com", k.crd, "[example.com]", "["+k.group+"]", "[crontabs]", "["+plural+"]").Replace(text)
	first, second, _ := strings.Cut(text, "\n---\n")
	expect.NoError(t, yaml.UnmarshalStrict([]byte(first), &policy))
	expect.NoError(t, yaml.UnmarshalStrict([]byte(second), &binding))
	return policy, binding
}

// clientApply acts as kubectl apply without --server-side: it sends the difference between the
// manifest, the last-applied manifest, and the object. Both manifests have annotations.
func (k *kind) clientApply(t *testing.T, name, fields string, last, now map[string]string) {
	t.Helper()
	text := func(annotations map[string]string) []byte {
		object := k.gadget(t, "v1", name, fields)
		object.SetAnnotations(annotations)
		encoded, err := json.Marshal(object.Object)
		expect.NoError(t, err)
		return encoded
	}
	live, err := json.Marshal(k.get(t, "v1", name).Object)
	expect.NoError(t, err)
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(text(last), text(now), live)
	expect.NoError(t, err)
	_, err = k.at("v1").Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	expect.NoError(t, err)
}

func (k *kind) serverApply(t *testing.T, name, fields string, annotations map[string]string) {
	t.Helper()
	object := k.gadget(t, "v1", name, fields)
	object.SetAnnotations(annotations)
	_, err := k.at("v1").Apply(t.Context(), name, object, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
	expect.NoError(t, err)
}

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
