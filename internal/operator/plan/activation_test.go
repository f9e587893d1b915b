// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const waitsForAdmission = "waiting until all API servers refuse objects that are too large to convert"

// unchanged is a definition with two versions whose spec never changed.
func unchanged(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.applyCRD(bothStoredOld)
	w.observed.CRD.Generation = 1
	return w
}

// TestUnchangedDefinition: nothing can be stored at another version, so that nothing is migrated,
// and the activation does not wait until all API servers refuse large objects.
func TestUnchangedDefinition(t *testing.T) {
	w := unchanged(t)
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "")
	expectCondition(t, w.observed.Policy.Status, v1alpha1.StorageMigratedCondition, "True", v1alpha1.ReasonNotNeeded,
		"objects were never stored in another version than v1beta1")
	if evidence := w.observed.Policy.Status.MigrationEvidence; evidence == nil || evidence.Source != v1alpha1.EvidenceUnchanged || w.observed.Policy.Status.CRD.Generation != 2 {
		t.Errorf("the evidence is %+v, want DefinitionUnchanged for generation 2", evidence)
	}
	for _, unwanted := range []string{waitsForAdmission, "migrate"} {
		if strings.Contains(w.story(), unwanted) {
			t.Errorf("the story has %q:\n%s", unwanted, w.story())
		}
	}
}

// TestObjectsOlderThanTheDefinition: a definition that was created again over objects says nothing about
// how they are stored.
func TestObjectsOlderThanTheDefinition(t *testing.T) {
	w := unchanged(t)
	w.written = observed.BackgroundCheck{Older: 2}
	w.converge()
	status := w.observed.Policy.Status
	if status.UnconvertedWindow == nil || status.UnconvertedWindow.OlderObjects != 2 {
		t.Errorf("the window is %+v, want one with two older objects", status.UnconvertedWindow)
	}
	expect.Equal(t, "evidence", nil, status.MigrationEvidence)
	expectCondition(t, status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonMigrating, "")
}

// TestEvidenceIsOfOneStorageVersion: what a run has proven says nothing about another storage version, although
// another client pruned status.storedVersions, nor about another definition.
func TestEvidenceIsOfOneStorageVersion(t *testing.T) {
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"another storage version": func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Generation++
			crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = true, false
			crd.Status.StoredVersions = []string{"v1beta1"}
		},
		"another definition": func(crd *apiextensionsv1.CustomResourceDefinition) { crd.UID = "another" },
	} {
		w := active(t)
		expect.Equal(t, "evidence before that", true, w.plan().Status.MigrationEvidence != nil)
		change(w.observed.CRD)
		expect.Equal(t, "evidence after "+name, nil, w.plan().Status.MigrationEvidence)
	}
}

// TestPromotionWaitsForAdmission: before the storage version changes, all API servers refuse large
// objects.
func TestPromotionWaitsForAdmission(t *testing.T) {
	w := unchanged(t)
	w.observed.Policy.Spec.StorageVersion = "v1"
	waited := false
	for range 60 {
		decided := w.plan()
		steps := kinds(decided.Steps)
		configured := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.ConversionConfiguredCondition)
		waits := configured != nil && configured.Message == waitsForAdmission
		if waits && (slices.Contains(steps, "SwitchCRD") || slices.Contains(steps, "EditVersions")) {
			t.Errorf("it writes the CustomResourceDefinition while API servers may accept large objects: %v", steps)
		}
		waited = waited || waits
		w.carryOut(decided)
		w.observed.Now = w.observed.Now.Add(time.Second)
	}
	expect.Equal(t, "it waits for API servers", true, waited)
}

// TestProofsAreRecalled: a status that was not written is made up for.
func TestProofsAreRecalled(t *testing.T) {
	w := active(t)
	want := w.observed.Policy.Status.Verification.DeepCopy()
	if want == nil || want.Samples == nil || !want.APIServerProbe {
		t.Fatalf("status.verification is %+v once it is active", want)
	}
	w.observed.Policy.Status.Verification = nil
	expect.Equal(t, "status.verification", want, w.plan().Status.Verification)
	w.observed.Samples, w.observed.APIServer = nil, nil
	expect.Equal(t, "status.verification where nothing is known", nil, w.plan().Status.Verification)
}

// withRights is a world in which the manager may read objects, as it does after a manager that died while it read.
func withRights(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.observed.ReadRights = true
	return w
}

// leftRights: rights to read go, whatever the gates say, unless objects are read.
var leftRights = changes{
	"broken rules": func(w *world) { w.changeRules("") },
	"paused":       func(w *world) { w.observed.Policy.Spec.Paused = true },
	"objects are read": func(w *world) {
		w.observed.Samples = &observed.BackgroundCheck{Subject: "x", Running: true}
	},
}

// applyCRDOf creates a CustomResourceDefinition of an API group.
func (w *world) applyCRDOf(group string) {
	w.t.Helper()
	w.applyCRD(strings.Replace(bothStoredNew, "group: example.com", "group: "+group, 1))
}

var (
	byCertManager = v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "ca", Kind: "Issuer", Group: "cert-manager.io"}}}
	byExternalIssuer = v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "ca", Kind: "PCAIssuer", Group: "issuers.example.org"}}}
	bySecret   = v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "tls"}}
	byInjector = v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: "tls"}}
	byOperator = v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged}
)

// deadlocks: a policy whose converter would need what it converts is not activated.
func deadlocks() changes {
	all := changes{}
	for name, c := range map[string]struct {
		group string
		spec  v1alpha1.ConversionPolicySpec
	}{
		"by cert-manager":          {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}},
		"by an external issuer":    {"issuers.example.org", v1alpha1.ConversionPolicySpec{Certificates: byExternalIssuer}},
		"by another issuer":        {"issuers.example.org", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}},
		"of orders":                {"acme.cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}},
		"of another kind":          {"example.com", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}},
		"by a Secret":              {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: bySecret}},
		"by the operator":          {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byOperator}},
		"by default":               {"cert-manager.io", v1alpha1.ConversionPolicySpec{}},
		"no converter, no renewal": {"cert-manager.io", v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{Type: v1alpha1.ConverterNone}, Certificates: byCertManager}},
		"of a converter elsewhere": {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byCertManager, Converter: v1alpha1.Converter{
			Type: v1alpha1.ConverterURL, URL: &v1alpha1.URLConverter{URL: "https://converter.example.com/convert"}}}},
	} {
		all[name] = func(w *world) {
			spec := &w.observed.Policy.Spec
			spec.Certificates = c.spec.Certificates
			if c.spec.Converter.Type != "" {
				spec.Converter = c.spec.Converter
			}
			w.applyCRDOf(c.group)
			if spec.Converter.Type == v1alpha1.ConverterNone {
				w.applyCRD(strings.Replace(equalVersions, "group: example.com", "group: "+c.group, 1))
			}
			w.converge()
			w.log.Reset()
		}
	}
	return all
}

func (w *world) expectDeadlock(want string) {
	w.t.Helper()
	status, got := w.observed.Policy.Status, ""
	condition := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConversionConfiguredCondition)
	if condition.Reason == v1alpha1.ReasonNeededToStart {
		got = condition.Reason + " " + condition.Message
		if !apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.StalledCondition) || status.ActivatedCRD != "" {
			w.t.Errorf("a policy with %s is active, or not stalled: %+v", got, status)
		}
	}
	reason, remedy, _ := strings.Cut(want, " ")
	if !strings.HasPrefix(got, reason) || !strings.Contains(got, remedy) || want == "" && got != "" {
		w.t.Errorf("it says %q, want %q", got, want)
	}
}

// TestDeadlocksInFleets: the certificates of the fleet count.
func TestDeadlocksInFleets(t *testing.T) {
	w := newFleetWorld(t, "blue", "green")
	w.Fleets["blue"].Spec.Certificates = &byCertManager
	w.move("blue")
	w.applyCRDOf("cert-manager.io")
	w.converge()
	w.expectDeadlock(v1alpha1.ReasonNeededToStart + " instead of ConverterFleet blue")
	w.moveTo("green")
	w.expectDeadlock("")
	w.expectDependency("", "")

	// A policy that converts continues, wherever it moves to, and whatever its fleet changes.
	w.Fleets["green"].Spec.Certificates = &byCertManager
	w.converge()
	w.expectDeadlock("")
	w.expectDependency(v1alpha1.ReasonNeededToStart, "set the type of spec.certificates of ConverterFleet green")
	w.moveTo("blue")
	w.settleAPIServers()
	if named := w.named(); !strings.HasSuffix(named, ".blue") {
		t.Errorf("the CustomResourceDefinition names %s", named)
	}
	w.expectDependency(v1alpha1.ReasonNeededToStart, "set the type of spec.certificates of ConverterFleet blue")
}

// expectDependency looks at the condition BootstrapDependency; there is none without a reason.
func (w *world) expectDependency(reason, says string) {
	w.t.Helper()
	condition := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.BootstrapDependencyCondition)
	switch {
	case condition == nil && reason != "":
		w.t.Errorf("there is no condition, want %s", reason)
	case condition != nil && (condition.Status != "True" || condition.Reason != reason || !strings.Contains(condition.Message, says)):
		w.t.Errorf("it is %s %s: %s; want %s: %s", condition.Status, condition.Reason, condition.Message, reason, says)
	}
}

// dependencies: active policies warn of converters that may need what they convert.
func dependencies() changes {
	hostNetwork := func(tolerations ...corev1.Toleration) v1alpha1.ConverterPods {
		return v1alpha1.ConverterPods{HostNetwork: true, Placement: v1alpha1.Placement{Tolerations: tolerations}}
	}
	notReady := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}
	notReadyForLong := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	all := changes{"no version needs a conversion any more": func(w *world) {
		w.observed.CRD.Spec.Group = "karpenter.sh"
		w.converge()
		w.applyCRD(onlyNew)
		w.observed.CRD.Spec.Group, w.observed.CRD.Status.StoredVersions = "karpenter.sh", []string{"v1"}
		w.converge()
	}}
	for name, c := range map[string]struct {
		group        string
		workload     v1alpha1.ConverterPods
		certificates v1alpha1.Certificates
	}{
		"another kind":                     {group: "example.com"},
		"nodes":                            {group: "karpenter.sh"},
		"nodes, in the network of nodes":   {group: "karpenter.sh", workload: hostNetwork(everything)},
		"network":                          {group: "kubeovn.io"},
		"network of nodes":                 {group: "kubeovn.io", workload: hostNetwork()},
		"network of nodes, for long":       {group: "kubeovn.io", workload: hostNetwork(notReadyForLong)},
		"network of nodes without network": {group: "kubeovn.io", workload: hostNetwork(notReady)},
		"network of any nodes":             {group: "kubeovn.io", workload: hostNetwork(everything)},
		"any nodes":                        {group: "kubeovn.io", workload: v1alpha1.ConverterPods{Placement: v1alpha1.Placement{Tolerations: []corev1.Toleration{everything}}}},
		"network and Services":             {group: "cilium.io"},
		"only Services":                    {group: "cilium.io", workload: hostNetwork(notReady)},
		"admission":                        {group: "kyverno.io"},
		"certificates":                     {group: "cert-manager.io"},
		"certificates of a Secret":         {group: "cert-manager.io", certificates: bySecret},
		"certificates with an injector":    {group: "acme.cert-manager.io", certificates: byInjector},
		"approval of certificates":         {group: "policy.cert-manager.io", certificates: byCertManager},
		"certificates of an issuer":        {group: "issuers.example.org", certificates: byExternalIssuer},
	} {
		all[name] = func(w *world) {
			w.observed.Policy.Spec.Workload.Dedicated, w.observed.Policy.Spec.Certificates = &c.workload, c.certificates
			w.observed.CRD.Spec.Group = c.group
			w.converge()
			w.log.Reset()
		}
	}
	return all
}

// TestBootstrapDependencyIsTold by one warning when API servers call the converter, and by another
// event when they no longer do.
func TestBootstrapDependencyIsTold(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.HoldBack = true
	w.applyCRDOf("cilium.io")
	w.converge()
	w.expectDependency("", "")
	w.HoldBack = false
	w.converge()
	w.useRules("/")
	w.expectDependency(v1alpha1.ReasonNeededToStart, "Cilium")
	w.pause(true)
	w.expectDependency(v1alpha1.ReasonNeededToStart, "Cilium")
	w.change("kubectl-edit", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Namespace = "elsewhere" })
	w.converge()
	w.expectDependency("", "")
	var told []string
	for line := range strings.Lines(w.events.String()) {
		if strings.Contains(line, "BootstrapDependency") || strings.Contains(line, "bootstrap dependency") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "Warning NeededToStart") || !strings.HasPrefix(told[1], "Normal  Resolved") {
		t.Errorf("events are:\n%s", strings.Join(told, "\n"))
	}
}

// TestConverterElsewhere: the operator does not know where a converter of the user runs.
func TestConverterElsewhere(t *testing.T) {
	w := newWorld(t, urlYAML)
	w.answerAt("converter.example.org:443", "")
	w.applyCRDOf("cilium.io")
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ConversionConfiguredCondition, "True", v1alpha1.ReasonConfigured, "converter.example.org")
	w.expectDependency("", "")
}
