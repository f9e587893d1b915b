//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	sample   = config + "/samples/crontab-hostport"
	exported = "crontabs-converter"
	theirs   = "conversion-system/converter-fleet-default/convert/theirs"
)

// author is the author of a chart with an exported converter.
type author struct {
	*cluster
	chart string
	// checks are the paths of the webhook when pods were checked, and the rulesets that they had to load.
	checks []string
}

// TestExportedChart: in a release, the ruleset that is in use and the certificate stay, pods are checked before the
// CustomResourceDefinition changes, and another converter keeps it until it is given back. No pods run here.
func TestExportedChart(t *testing.T) {
	a := &author{cluster: start(t), chart: t.TempDir()}
	expect.NoError(t, os.WriteFile(filepath.Join(a.chart, "Chart.yaml"), []byte("apiVersion: v2\nname: crontabs\nversion: 1.0.0\n"), 0o600))
	ended := a.runHooks(t, a.check)
	defer func() { ended() }()

	a.export(t, "hub: v1", "cert-manager")
	rendered := decode(t, a.succeeds(t, "template", name, a.chart, "--set", "conversion.migrate=true"))
	crd := rendered["CustomResourceDefinition  crontabs.example.com"]
	expect.Equal(t, "cert-manager injects", namespace+"/"+exported+"-tls", crd.GetAnnotations()["cert-manager.io/inject-ca-from"])

	a.export(t, "hub: v1", "helm")
	a.succeeds(t, "install", name, a.chart, "--create-namespace")
	first, certificate := a.rulesets(t, "-rulesets")[0], a.certificate(t)
	expect.Equal(t, "the converter", ours(first), a.names(t))
	a.available(t)
	a.succeeds(t, "upgrade", name, a.chart)
	expect.Equal(t, "checks without a change", 0, len(a.checks))

	a.export(t, "hub: v1\n      overflow: Drop", "helm")
	a.succeeds(t, "upgrade", name, a.chart)
	second := path.Base(a.names(t))
	expect.Equal(t, "a check of the new ruleset, before it is named", fmt.Sprint([]string{first + " " + second}), fmt.Sprint(a.checks))
	expect.Equal(t, "rulesets in pods", fmt.Sprint(slices.Sorted(slices.Values([]string{first, second}))), fmt.Sprint(a.rulesets(t, "-rulesets")))
	expect.Equal(t, "rulesets of the hook", 0, len(a.rulesets(t, "-rulesets-next")))
	if diff := cmp.Diff(certificate, a.certificate(t)); diff != "" {
		t.Errorf("an upgrade changed the certificate (-before +after):\n%s", diff)
	}

	a.succeeds(t, "upgrade", name, a.chart, "--set", "conversion.operator=true")
	expect.Equal(t, "the converter, until an operator takes over", ours(second), a.names(t))
	a.takeOver(t)
	if said, err := a.helm(t, "upgrade", name, a.chart, "--set", "conversion.operator=false"); err == nil || !strings.Contains(said, `conflicts with "conversion-operator"`) {
		t.Errorf("the chart takes the CustomResourceDefinition back, unasked: %v\n%s", err, said)
	}
	a.succeeds(t, "upgrade", name, a.chart, "--set", "conversion.operator=true")
	expect.Equal(t, "the converter of the operator", theirs, a.names(t))
	expect.Equal(t, "the chart has pods", false, a.deploys(t))

	a.succeeds(t, "upgrade", name, a.chart, "--set", "conversion.operator=false")
	expect.Equal(t, "the chart has pods", true, a.deploys(t))
	expect.Equal(t, "the converter of the operator, until pods run", theirs, a.names(t))
	a.available(t)
	a.succeeds(t, "upgrade", name, a.chart, "--force-conflicts")
	expect.Equal(t, "the converter", ours(second), a.names(t))
	expect.Equal(t, "checks", 3, len(a.checks)) // one before the refused upgrade

	a.succeeds(t, "uninstall", name)
	expect.Equal(t, "the chart has pods", false, a.deploys(t))
	expect.Equal(t, "the definition stays", ours(second), a.names(t))
}

// export writes the template into the chart.
func (a *author) export(t *testing.T, rules, certificates string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sample, "2-policy.yaml"))
	expect.NoError(t, err)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	expect.NoError(t, os.WriteFile(policy, []byte(strings.Replace(string(text), "hub: v1", rules, 1)), 0o600))
	templates := filepath.Join(a.chart, "templates")
	expect.NoError(t, os.RemoveAll(templates))
	root := cmd.NewRootCommand()
	root.SetOut(io.Discard)
	root.SetArgs([]string{"export", "--policy", policy, "--crd", filepath.Join(sample, "3-crd-both.yaml"), "-o", "helm", "--folder", templates, "--image", "example.com/converter:v1", "--certificates", certificates})
	expect.NoError(t, root.ExecuteContext(t.Context()))
}

// check stands for the Job that checks pods, of which there are none.
func (a *author) check(ctx context.Context, pod corev1.PodSpec) error {
	next := &corev1.ConfigMap{}
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod.Volumes[0].ConfigMap.Name}, next); err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: "crontabs.example.com"}, crd); err != nil {
		return err
	}
	for key := range next.BinaryData {
		hash, _ := conversion.StoredHash(key)
		a.checks = append(a.checks, path.Base(*crd.Spec.Conversion.Webhook.ClientConfig.Service.Path)+" "+hash)
	}
	return nil
}

func (a *author) crd(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, a.Client.Get(t.Context(), client.ObjectKey{Name: "crontabs.example.com"}, crd))
	return crd
}

// names is the Service and the path that the CustomResourceDefinition names.
func (a *author) names(t *testing.T) string {
	t.Helper()
	service := a.crd(t).Spec.Conversion.Webhook.ClientConfig.Service
	return service.Namespace + "/" + service.Name + *service.Path
}

// ours is a ruleset at the Service of the release.
func ours(hash string) string { return namespace + "/" + exported + "/convert/" + hash }

// certificate is the Secret, whose certificate API servers accept.
func (a *author) certificate(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	expect.NoError(t, a.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: exported + "-tls"}, secret))
	roots, err := pki.ParseBundle(a.crd(t).Spec.Conversion.Webhook.ClientConfig.CABundle)
	expect.NoError(t, err)
	expect.NoError(t, pki.CheckLeaf(pki.KeyPair{Certificate: secret.Data["tls.crt"], Key: secret.Data["tls.key"]}, roots, exported+"."+namespace+".svc", time.Now()))
	return secret.Data
}

// rulesets are the hashes of those in a ConfigMap, which may not exist.
func (a *author) rulesets(t *testing.T, configMap string) (hashes []string) {
	t.Helper()
	found := &corev1.ConfigMap{}
	expect.NoError(t, client.IgnoreNotFound(a.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: exported + configMap}, found)))
	for _, key := range keys(found.BinaryData) {
		hash, _ := conversion.StoredHash(key)
		hashes = append(hashes, hash)
	}
	return hashes
}

// available says that pods run.
func (a *author) available(t *testing.T) {
	t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: exported}}
	expect.NoError(t, a.Client.Status().Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":2,"readyReplicas":2,"availableReplicas":2}}`))))
}

func (a *author) deploys(t *testing.T) bool {
	t.Helper()
	err := a.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: exported}, &appsv1.Deployment{})
	expect.NoError(t, client.IgnoreNotFound(err))
	return err == nil
}

// takeOver points the CustomResourceDefinition at another converter, as the operator does.
func (a *author) takeOver(t *testing.T) {
	t.Helper()
	patch := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"crontabs.example.com"},"spec":{"conversion":{"strategy":"Webhook","webhook":{
		"conversionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"conversion-system","name":"converter-fleet-default","path":"/convert/theirs","port":443}}}}}}`
	expect.NoError(t, a.Client.Patch(t.Context(), a.crd(t), client.RawPatch(types.ApplyPatchType, []byte(patch)), client.FieldOwner("conversion-operator"), client.ForceOwnership))
}
