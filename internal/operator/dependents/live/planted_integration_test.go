//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestPlanted finds 23 dependents of ten kinds, and nothing else. After the repairs, and after the
// author of each manifest has followed the advice, the version goes and nothing breaks.
func TestPlanted(t *testing.T) {
	c := &cluster{testenv.For(t, testenv.Options{})}
	definition, owner := c.plant(t)
	report := find(t, c.Kubeconfig, func(*Options) {})
	planted := lines(report)
	golden.Check(t, strings.Join(planted, "\n")+"\n", "planted.txt")
	if len(report.NotChecked) > 0 {
		t.Errorf("not checked: %v", report.NotChecked)
	}

	before := c.versionOf(t, "dep-owned")
	tried := find(t, c.Kubeconfig, func(o *Options) { o.Repair, o.DryRun = true, true })
	expect.Equal(t, "dependents after a dry run", planted, lines(tried))
	expect.Equal(t, "resourceVersion after a dry run", before, c.versionOf(t, "dep-owned"))
	c.repairs(t, tried, true)

	var record bytes.Buffer
	repaired := find(t, c.Kubeconfig, func(o *Options) { o.Repair, o.Record = true, &record })
	c.repairs(t, repaired, false)
	expect.Equal(t, "lines of the record", len(repaired.Repairs), strings.Count(record.String(), "\n"))
	var want []string
	for _, line := range planted {
		if !strings.Contains(line, "OwnerReference") && !strings.Contains(line, "HelmRelease") || strings.Contains(line, "dep-orphan") {
			want = append(want, line)
		}
	}
	expect.Equal(t, "remaining dependents", want, lines(repaired))
	again := find(t, c.Kubeconfig, func(o *Options) { o.Repair = true })
	if done, failed := again.Repaired(); done != 0 || failed != 1 {
		t.Errorf("the second run made %d repairs, and %d failed", done, failed)
	}

	c.followAdvice(t)
	c.label(t, definition, "v1")
	expect.NoError(t, c.Client.Delete(t.Context(), custom("apps/v1", "ControllerRevision", "dep-revision")))
	if report := find(t, c.Kubeconfig, func(*Options) {}); len(report.Dependents)+len(report.NotChecked) > 0 {
		t.Errorf("dependents remain: %v, not checked: %v", lines(report), report.NotChecked)
	}
	c.remove(t, definition)
	c.nothingBreaks(t, owner)
}

// repairs checks that all repairs succeeded, except that of the object whose owner does not exist.
func (c *cluster) repairs(t *testing.T, report *dependents.Report, dryRun bool) {
	t.Helper()
	var got []string
	for _, r := range report.Repairs {
		outcome := fmt.Sprintf("%s → %s", r.Before, r.After)
		if r.Failure != "" {
			outcome = r.Failure
		}
		got = append(got, fmt.Sprintf("%s %s: %s", r.Object, r.Field, outcome))
		if r.UID == "" || r.ResourceVersionBefore == "" || r.DryRun != dryRun ||
			(r.Failure == "") != (r.ResourceVersionAfter != "") || !dryRun && r.ResourceVersionAfter == r.ResourceVersionBefore {
			t.Errorf("repair is %+v", r)
		}
	}
	want := []string{
		"CronTab default/dep-2 .metadata.ownerReferences[0].apiVersion: example.com/v1beta1 → example.com/v1",
		"ConfigMap default/dep-owned .metadata.ownerReferences[1].apiVersion: example.com/v1beta1 → example.com/v1",
		"Secret default/dep-owned .metadata.ownerReferences[0].apiVersion: example.com/v1beta1 → example.com/v1",
		"ServiceAccount default/dep-orphan .metadata.ownerReferences[0].apiVersion: its owner CronTab gone with the uid 00000000-0000-0000-0000-000000000001 does not exist: garbage collection would delete it; remove the reference, or the object",
		"Secret default/sh.helm.release.v1.dep.v3 manifest of release dep, 2 times: example.com/v1beta1 → example.com/v1",
		"Secret default/sh.helm.release.v1.failed.v1 manifest of release failed, 1 times: example.com/v1beta1 → example.com/v1",
	}
	slices.Sort(want)
	slices.Sort(got)
	expect.Equal(t, "repairs", want, got)
}

// plant creates the definition, the dependents, and objects that only resemble them. It returns the
// owner of some.
func (c *cluster) plant(t *testing.T) (*apiextensionsv1.CustomResourceDefinition, *unstructured.Unstructured) {
	t.Helper()
	definition := c.define(t, apiextensionsv1.NamespaceScoped, "example.com", "crontabs", "CronTab", "v1beta1", "v1")
	c.define(t, apiextensionsv1.NamespaceScoped, "example.org", "crontabs", "CronTab", "v1beta1", "v1")
	c.define(t, apiextensionsv1.NamespaceScoped, "kustomize.toolkit.fluxcd.io", "kustomizations", "Kustomization", "v1")
	c.define(t, apiextensionsv1.NamespaceScoped, "argoproj.io", "applications", "Application", "v1alpha1")
	c.define(t, apiextensionsv1.ClusterScoped, "apiextensions.crossplane.io", "compositions", "Composition", "v1")
	c.createFrom(t, "testdata/planted.yaml")
	c.label(t, definition, "v1beta1")

	owner := c.create(t, custom("example.com/v1", "CronTab", "dep"))
	c.writeAt(t, owner)
	second := custom("example.com/v1beta1", "CronTab", "dep-2")
	second.SetOwnerReferences([]metav1.OwnerReference{reference(owner, "example.com/v1beta1")})
	expect.NoError(t, c.Client.Create(t.Context(), second, client.FieldOwner("dep-updater")))
	other := c.create(t, custom("example.org/v1beta1", "CronTab", "not"))

	config := c.ownedBy(t, "dep-owned", other, "example.org/v1beta1")
	config.OwnerReferences = append(config.OwnerReferences, reference(owner, "example.com/v1beta1"))
	expect.NoError(t, c.Client.Update(t.Context(), config))
	expect.NoError(t, c.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "dep-owned", OwnerReferences: []metav1.OwnerReference{reference(owner, "example.com/v1beta1")},
	}}))
	orphan := reference(owner, "example.com/v1beta1")
	orphan.Name, orphan.UID = "gone", "00000000-0000-0000-0000-000000000001"
	expect.NoError(t, c.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "dep-orphan", OwnerReferences: []metav1.OwnerReference{orphan},
	}}))
	c.ownedBy(t, "not-owned", owner, "example.com/v1")
	c.plantReleases(t)
	return definition, owner
}

// writeAt writes an object at the old version, server-side and as its status.
func (c *cluster) writeAt(t *testing.T, owner *unstructured.Unstructured) {
	t.Helper()
	applied := custom("example.com/v1beta1", "CronTab", owner.GetName())
	applied.Object["spec"] = map[string]any{"applied": true}
	expect.NoError(t, c.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("dep-applier")))
	reported := custom("example.com/v1beta1", "CronTab", owner.GetName())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"seen":true}}`))
	expect.NoError(t, c.Client.Status().Patch(t.Context(), reported, patch, client.FieldOwner("dep-reporter")))
}

// label names a version for the contract of Cluster API.
func (c *cluster) label(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition, version string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"cluster.x-k8s.io/v1beta1":"`+version+`"}}}`))
	expect.NoError(t, c.Client.Patch(t.Context(), definition, patch))
}

func (c *cluster) plantReleases(t *testing.T) {
	t.Helper()
	const old = "---\n# Source: dep/templates/a.yaml\napiVersion: example.com/v1beta1\nkind: CronTab\nmetadata:\n  name: dep\n"
	c.release(t, "dep", 1, "superseded", old)
	c.release(t, "dep", 2, "superseded", old)
	c.release(t, "dep", 3, "deployed", old+"---\nkind: CronTab\nmetadata: {name: dep-2}\napiVersion: \"example.com/v1beta1\" # quoted\n---\napiVersion: example.org/v1beta1\nkind: CronTab\n")
	c.release(t, "failed", 1, "deployed", old)
	c.release(t, "failed", 2, "failed", strings.ReplaceAll(old, "v1beta1", "v1"))
	c.release(t, "not", 1, "superseded", old)
	c.release(t, "not", 2, "deployed", "# apiVersion: example.com/v1beta1\napiVersion: example.com/v1\nkind: CronTab\nspec:\n  note: |\n    apiVersion: example.com/v1beta1\n    kind: CronTab\n")
}

func (c *cluster) versionOf(t *testing.T, name string) string {
	t.Helper()
	object := &corev1.ConfigMap{}
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object))
	return object.ResourceVersion
}

// followAdvice changes what belongs to the authors of manifests.
func (c *cluster) followAdvice(t *testing.T) {
	t.Helper()
	for _, one := range []struct{ apiVersion, kind, name, patch string }{
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "dep-validating", `[{"op":"add","path":"/webhooks/0/rules/0/apiVersions/-","value":"v1"}]`},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "dep-mutating", `[{"op":"add","path":"/webhooks/0/rules/0/apiVersions/-","value":"v1"}]`},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "dep-policy", `[{"op":"add","path":"/spec/matchConstraints/resourceRules/0/apiVersions/-","value":"v1"},{"op":"add","path":"/spec/matchConstraints/excludeResourceRules/0/apiVersions/-","value":"v1"}]`},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "dep-params", `[{"op":"replace","path":"/spec/paramKind/apiVersion","value":"example.com/v1"}]`},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "dep-binding", `[{"op":"add","path":"/spec/matchResources/resourceRules/0/apiVersions/-","value":"v1"}]`},
		{"autoscaling/v2", "HorizontalPodAutoscaler", "dep-scaler", `[{"op":"replace","path":"/spec/scaleTargetRef/apiVersion","value":"example.com/v1"}]`},
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", "dep-health", `[{"op":"replace","path":"/spec/healthChecks/0/apiVersion","value":"example.com/v1"}]`},
		{"apiextensions.crossplane.io/v1", "Composition", "dep-composition", `[{"op":"replace","path":"/spec/pipeline/0/input/resources/0/base/apiVersion","value":"example.com/v1"}]`},
		{"v1", "ConfigMap", "dep-manifest", `[{"op":"remove","path":"/data"}]`},
		{"v1", "ServiceAccount", "dep-orphan", `[{"op":"remove","path":"/metadata/ownerReferences"}]`},
		// What a retirement does.
		{"example.com/v1", "CronTab", "dep", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
		{"example.com/v1", "CronTab", "dep-2", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
	} {
		expect.NoError(t, c.Client.Patch(t.Context(), custom(one.apiVersion, one.kind, one.name), client.RawPatch(types.JSONPatchType, []byte(one.patch))))
	}
	for _, one := range []struct{ apiVersion, kind, name, patch string }{
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", "dep-health", `[{"op":"replace","path":"/status/inventory/entries/0/v","value":"v1"}]`},
		{"argoproj.io/v1alpha1", "Application", "dep-application", `[{"op":"replace","path":"/status/resources/0/version","value":"v1"}]`},
	} {
		expect.NoError(t, c.Client.Status().Patch(t.Context(), custom(one.apiVersion, one.kind, one.name), client.RawPatch(types.JSONPatchType, []byte(one.patch))))
	}
}

// remove removes the old version, and waits until the API server no longer serves it.
func (c *cluster) remove(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/versions/0/name","value":"v1beta1"},{"op":"remove","path":"/spec/versions/0"}]`))
	expect.NoError(t, c.Client.Patch(t.Context(), definition, patch))
	expect.Success(t, "v1beta1 is gone", func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "dep"}, custom("example.com/v1beta1", "CronTab", "dep"))
		if err == nil || !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading at v1beta1: %w", errors.Join(err, errors.New("it is served")))
		}
		return nil
	})
}

// nothingBreaks applies an object server-side, reads the release records, and lets the garbage
// collector of Kubernetes delete what belongs to an owner. An object whose reference was not
// repaired shows what would have happened.
func (c *cluster) nothingBreaks(t *testing.T, owner *unstructured.Unstructured) {
	t.Helper()
	applied := custom("example.com/v1", "CronTab", "dep")
	applied.Object["spec"] = map[string]any{"applied": "again"}
	expect.NoError(t, c.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("dep-applier"), client.ForceOwnership))

	record := &corev1.Secret{}
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "sh.helm.release.v1.dep.v3"}, record))
	release, err := dependents.DecodeRelease(record.Data["release"])
	expect.NoError(t, err)
	if release.Name != "dep" || release.Revision != 3 || release.Status != "deployed" || record.Type != "helm.sh/release.v1" || record.Labels["status"] != "deployed" {
		t.Errorf("the record is %+v", release)
	}

	c.ownedBy(t, "unrepaired", owner, "example.com/v1beta1")
	c.collectGarbage(t)
	expect.NoError(t, c.Client.Delete(t.Context(), owner.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	gone := func(object client.Object, name string) {
		t.Helper()
		expect.Success(t, name+" is collected", func(ctx context.Context) error {
			err := c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, object)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", errors.Join(err))
		})
	}
	gone(&corev1.Secret{}, "dep-owned")
	gone(custom("example.com/v1", "CronTab", "dep-2"), "dep-2")
	gone(&corev1.ConfigMap{}, "not-owned")
	c.versionOf(t, "unrepaired")
	c.versionOf(t, "dep-owned") // its other owner is still there
}

// collectGarbage runs the garbage collector of Kubernetes until the test ends.
func (c *cluster) collectGarbage(t *testing.T) {
	t.Helper()
	binary := filepath.Join(c.ControlPlane.GetAPIServer().Path, "..", "kube-controller-manager")
	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, "--kubeconfig="+c.KubeconfigFile(t), "--controllers=garbage-collector-controller",
		"--leader-elect=false", "--secure-port=0")
	command.Stdout, command.Stderr = &output, &output
	expect.NoError(t, command.Start())
	t.Cleanup(func() {
		// The test's context ends before its cleanup, and kills the process.
		if err := command.Wait(); t.Failed() {
			t.Logf("kube-controller-manager: %v", err)
			lines := strings.Split(output.String(), "\n")
			t.Logf("kube-controller-manager:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	})
}
