//go:build integration && crossplane

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// composite is an XRD of two versions, and the kind that Crossplane generates from it.
type composite struct{ noted }

// TestCrossplane plays the life of a policy for a kind that Crossplane's core generates: make crossplane
// builds that and runs the test. The manager has the rights of the installation, then those of
// config/components/crossplane too.
func TestCrossplane(t *testing.T) {
	startCrossplane(t)
	k := &composite{noted{group: "platform.example.com", policy: "crontabs.platform.example.com"}}
	k.defineXRD(t)
	k.write(t, "v1beta1", "early", "{hostPort: 'early.example.com:1', crossplane: {compositionRef: {name: missing}}}")
	k.createPolicy(t)
	waitFor(t, k.policy, v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonRightsNotGranted, []string{k.policy, "config/components/crossplane"})
	_, err := testenv.Install(t.Context(), cluster, "components/crossplane/rights.yaml", "components/crossplane/confinement.yaml", "guard/conversion.yaml")
	expect.NoError(t, err)
	patch(t, getPolicy(t, k.policy), `{"metadata":{"annotations":{"rights":"granted"}}}`)
	waitReady(t, k.policy, v1alpha1.ReasonSucceeded)

	k.checkConverts(t)
	expect.Equal(t, "status.crd.writer", crds.Crossplane+" compositeresourcedefinitions.apiextensions.crossplane.io/"+k.policy, getPolicy(t, k.policy).Status.CRD.Writer)
	expect.Equal(t, "host at v1 of an object of v1beta1", "early.example.com", k.read(t, "v1", "early", "host"))
	expect.Equal(t, "a field that Crossplane adds", "missing", k.read(t, "v1", "early", "crossplane", "compositionRef", "name"))
	k.write(t, "v1", "late", "{host: late.example.com, port: '2'}")
	expect.Equal(t, "hostPort at v1beta1 of an object of v1", "late.example.com:2", k.read(t, "v1beta1", "late", "hostPort"))

	t.Run("Crossplane keeps it", k.keepsIt)
	t.Run("the manager may change nothing else", k.isConfined)
	t.Run("clients cannot remove it", k.isGuarded)
	t.Run("a replacement of the XRD keeps it", k.isKept)
	t.Run("versions are the author's", k.movesVersions)
	t.Run("the deletion removes it", k.isReleased)
}

// keepsIt: Crossplane writes the CRD for another reason, and copies the conversion again.
func (k *composite) keepsIt(t *testing.T) {
	before := getCRD(t, k.policy)
	patch(t, k.xrd(t), `{"spec":{"metadata":{"labels":{"written":"again"}}}}`)
	expect.Eventually(t, "Crossplane has written the CRD", func() (bool, string) {
		return getCRD(t, k.policy).Labels["written"] == "again", fmt.Sprint(getCRD(t, k.policy).Labels)
	})
	expect.Equal(t, "generation", before.Generation, getCRD(t, k.policy).Generation)
	k.checkConverts(t)
}

// isConfined: admission refuses other changes of XRDs by the manager.
func (k *composite) isConfined(t *testing.T) {
	asManager, err := client.New(manager.config, client.Options{})
	expect.NoError(t, err)
	for _, text := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"metadata":{"labels":{"a":"b"}}}}`, `{"spec":{"defaultCompositionRef":{"name":"a"}}}`, k.versions("v1beta1")} {
		expect.Eventually(t, "admission refuses "+text, func() (bool, string) {
			err := asManager.Patch(t.Context(), k.xrd(t), client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
			return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "composite-definitions"), fmt.Sprint(err)
		})
	}
}

// isGuarded: the guard refuses to remove the conversion from the XRD, and Crossplane reverts its removal
// from the CRD.
func (k *composite) isGuarded(t *testing.T) {
	without := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/conversion"}]`))
	expect.Eventually(t, "the guard refuses it", func() (bool, string) {
		err := cluster.Patch(t.Context(), k.xrd(t), without, client.DryRunAll)
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	before := getCRD(t, k.policy).Generation
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	expect.NoError(t, cluster.Patch(t.Context(), getCRD(t, k.policy), none))
	expect.Eventually(t, "Crossplane reverts it", func() (bool, string) {
		crd := getCRD(t, k.policy)
		return crds.Strategy(crd) == apiextensionsv1.WebhookConverter && crd.Generation >= before+2, fmt.Sprint(crd.Generation, crd.Spec.Conversion.Strategy)
	})
	waitReady(t, k.policy, v1alpha1.ReasonSucceeded)
	k.checkConverts(t)
}

// isKept: with keep-conversion, a client replaces the XRD as a whole, as Crossplane's package manager does.
func (k *composite) isKept(t *testing.T) {
	testenv.NeedMutatingPolicies(t, server.Kubeconfig)
	_, err := testenv.Install(t.Context(), cluster, "components/keep-conversion/policy.yaml")
	expect.NoError(t, err)
	before := k.xrd(t).Object["spec"].(map[string]any)["conversion"]
	without := func(options ...client.UpdateOption) error {
		xrd := k.xrd(t)
		unstructured.RemoveNestedField(xrd.Object, "spec", "conversion")
		xrd.SetManagedFields(nil)
		return cluster.Update(t.Context(), xrd, options...)
	}
	expect.Eventually(t, "the update is admitted", func() (bool, string) {
		err := without(client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	expect.NoError(t, without())
	expect.Equal(t, "spec.conversion of the XRD", before, k.xrd(t).Object["spec"].(map[string]any)["conversion"])
	k.checkConverts(t)
	waitReady(t, k.policy, v1alpha1.ReasonSucceeded)
}

// movesVersions: the policy says what to change in the XRD, and continues when its author did.
func (k *composite) movesVersions(t *testing.T) {
	patch(t, getPolicy(t, k.policy), `{"spec":{"storageVersion":"v1"}}`)
	waitFor(t, k.policy, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonPromotionRefused,
		[]string{"set referenceable: false for v1beta1", "set referenceable: true for v1"})
	patch(t, k.xrd(t), k.versions("v1", "v1beta1"))
	patch(t, getPolicy(t, k.policy), `{"spec":{"migration":{"trigger":"moved"}}}`)
	k.migrate(t)
	expect.Eventually(t, "the previous version is pruned", func() (bool, string) {
		stored := getCRD(t, k.policy).Status.StoredVersions
		return slices.Equal(stored, []string{"v1"}), fmt.Sprint(stored)
	})
	patch(t, getPolicy(t, k.policy), `{"spec":{"retirement":[{"version":"v1beta1","action":"Deprecate"}]}}`)
	waitFor(t, k.policy, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, v1alpha1.ReasonBlocked, []string{"set deprecated: true for v1beta1"})
}

// isReleased: when nothing needs the conversion any more, the deletion of the policy removes it from the
// XRD, and ends when Crossplane has copied that.
func (k *composite) isReleased(t *testing.T) {
	patch(t, k.xrd(t), k.versions("v1"))
	expect.Eventually(t, "Crossplane removes the version", func() (bool, string) {
		return len(getCRD(t, k.policy).Spec.Versions) == 1, "not yet"
	})
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, k.policy)))
	waitUntilGone(t, k.policy)
	expect.Equal(t, "strategy of the CRD", apiextensionsv1.NoneConverter, crds.Strategy(getCRD(t, k.policy)))
	if conversion, has, _ := unstructured.NestedMap(k.xrd(t).Object, "spec", "conversion"); has {
		t.Errorf("the XRD still has a conversion: %v", conversion)
	}
	expect.Equal(t, "host at v1 in the end", "early.example.com", k.read(t, "v1", "early", "host"))
}

// checkConverts: the CRD has the conversion of the XRD, and Crossplane wrote it there.
func (k *composite) checkConverts(t *testing.T) {
	t.Helper()
	crd := getCRD(t, k.policy)
	if crds.Strategy(crd) != apiextensionsv1.WebhookConverter || crds.ConversionWriter(crd, crd.Spec.Conversion, "") != "crossplane" {
		t.Errorf("%q wrote spec.conversion of the CRD: %+v", crds.ConversionWriter(crd, crd.Spec.Conversion, ""), crd.Spec.Conversion)
	}
	strategy, _, err := unstructured.NestedString(k.xrd(t).Object, "spec", "conversion", "strategy")
	expect.NoError(t, err)
	expect.Equal(t, "the XRD has the strategy", string(apiextensionsv1.WebhookConverter), strategy)
}

// defineXRD creates the XRD, and waits until Crossplane has generated the CRD.
func (k *composite) defineXRD(t *testing.T) {
	t.Helper()
	xrd := &unstructured.Unstructured{}
	expect.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: `+k.policy+`}
spec:
  scope: Namespaced
  group: `+k.group+`
  names: {kind: CronTab, plural: crontabs}`), xrd))
	versions := &unstructured.Unstructured{}
	expect.NoError(t, yaml.Unmarshal([]byte(k.versions("v1beta1", "v1")), &versions.Object))
	xrd.Object["spec"].(map[string]any)["versions"] = versions.Object["spec"].(map[string]any)["versions"]
	expect.NoError(t, cluster.Create(t.Context(), xrd))
	expect.Eventually(t, "Crossplane generates the CRD", func() (bool, string) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := cluster.Get(t.Context(), client.ObjectKey{Name: k.policy}, crd)
		return err == nil && crds.Condition(crd, apiextensionsv1.Established), fmt.Sprint(err)
	})
}

// versions is a patch of an XRD with these versions. The first is referenceable.
func (k *composite) versions(names ...string) string {
	var all []string
	for i, name := range names {
		fields := `"hostPort":{"type":"string"}`
		if name == "v1" {
			fields = `"host":{"type":"string"},"port":{"type":"string"}`
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"served":true,"referenceable":%t,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}`, name, i == 0, fields))
	}
	return `{"spec":{"versions":[` + strings.Join(all, ",") + `]}}`
}

func (k *composite) xrd(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	xrd := &unstructured.Unstructured{}
	xrd.SetAPIVersion("apiextensions.crossplane.io/v2")
	xrd.SetKind("CompositeResourceDefinition")
	return get(t, k.policy, xrd)
}

func (k *composite) createPolicy(t *testing.T) {
	t.Helper()
	createPolicy(t, k.group, func(policy *v1alpha1.ConversionPolicy) {
		rule := policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format
		rule.From, rule.To = ".spec.hostPort", map[string]v1alpha1.Path{"host": ".spec.host", "port": ".spec.port"}
	})
}

// write creates an object with the given spec, in YAML.
func (k *composite) write(t *testing.T, version, name, spec string) {
	t.Helper()
	k.create(t, version, name, "spec: "+spec)
}

// read reads a field of the spec of an object at a version.
func (k *composite) read(t *testing.T, version, name string, fields ...string) string {
	t.Helper()
	object := k.object(version, name)
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	text, _, err := unstructured.NestedString(object.Object, slices.Concat([]string{"spec"}, fields)...)
	expect.NoError(t, err)
	return text
}

// startCrossplane installs Crossplane's kinds, and runs its core until the test ends.
func startCrossplane(t *testing.T) {
	t.Helper()
	binary, folder := os.Getenv("CROSSPLANE"), os.Getenv("CROSSPLANE_CRDS")
	if binary == "" || folder == "" {
		t.Fatal("CROSSPLANE and CROSSPLANE_CRDS are not set: run make crossplane")
	}
	_, err := envtest.InstallCRDs(server.Kubeconfig, envtest.CRDInstallOptions{Paths: []string{folder}, ErrorIfPathMissing: true})
	expect.NoError(t, err)
	dir := t.TempDir()
	writeCertificates(t, dir)
	log, err := os.Create(filepath.Join(dir, "log"))
	expect.NoError(t, err)
	command := exec.CommandContext(t.Context(), binary, "core", "start", "--debug", "--enable-webhooks=false", "--tls-client-certs-dir="+dir,
		"--xpkg-cache-dir="+filepath.Join(dir, "cache"), "--metrics-port=0", "--health-probe-port=0")
	command.Stdout, command.Stderr, command.WaitDelay = log, log, time.Minute
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Env = append(os.Environ(), "KUBECONFIG="+server.KubeconfigFile(t, envtest.User{Name: "crossplane", Groups: []string{"system:masters"}}))
	expect.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Wait() // the end of the test's context interrupts it
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the end of Crossplane's log:\n%s", text[max(0, len(text)-20_000):])
		}
	})
}

// writeCertificates writes the client certificate that Crossplane has for functions, which no function of
// this test needs.
func writeCertificates(t *testing.T, dir string) {
	t.Helper()
	authority, err := pki.NewAuthority("crossplane", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "crossplane", time.Now(), time.Hour)
	expect.NoError(t, err)
	for name, content := range map[string][]byte{"ca.crt": authority.Certificate, "tls.crt": leaf.Certificate, "tls.key": leaf.Key} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
}
