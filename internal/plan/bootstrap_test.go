// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// applyCRDOf creates a CustomResourceDefinition of an API group.
func (w *world) applyCRDOf(group string) {
	w.t.Helper()
	w.applyCRD(strings.Replace(bothStoredNew, "group: example.com", "group: "+group, 1))
}

var (
	byCertManager = v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "ca", Kind: "Issuer", Group: "cert-manager.io"}}}
	byExternalIssuer = v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "ca", Kind: "PCAIssuer", Group: "issuers.example.org"}}}
	bySecret   = v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "tls"}}
	byInjector = v1alpha1.Certificates{Injected: &v1alpha1.InjectedCertificates{SecretName: "tls"}}
	byOperator = v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{}}
)

// TestDeadlocks: a policy whose converter would need what it converts is not activated.
func TestDeadlocks(t *testing.T) {
	refused := func(says string) string { return v1alpha1.ReasonBootstrapDeadlock + " " + says }
	cases := map[string]struct {
		group string
		spec  v1alpha1.ConversionPolicySpec
		want  string
	}{
		"by cert-manager":          {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}, refused("set spec.certificates.selfManaged")},
		"by an external issuer":    {"issuers.example.org", v1alpha1.ConversionPolicySpec{Certificates: byExternalIssuer}, refused("set spec.certificates.selfManaged")},
		"by another issuer":        {"issuers.example.org", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}, ""},
		"of orders":                {"acme.cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}, ""},
		"of another kind":          {"example.com", v1alpha1.ConversionPolicySpec{Certificates: byCertManager}, ""},
		"by a Secret":              {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: bySecret}, ""},
		"by the operator":          {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byOperator}, ""},
		"by default":               {"cert-manager.io", v1alpha1.ConversionPolicySpec{Workload: &v1alpha1.Workload{}}, ""},
		"no converter, no renewal": {"cert-manager.io", v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{None: &v1alpha1.NoneConverter{}}, Certificates: byCertManager}, ""},
		"of a converter elsewhere": {"cert-manager.io", v1alpha1.ConversionPolicySpec{Certificates: byCertManager, Converter: v1alpha1.Converter{
			URL: "https://converter.example.com/convert"}}, refused("set spec.certificates.selfManaged")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			spec := &w.observed.Policy.Spec
			spec.Workload, spec.Certificates = c.spec.Workload, c.spec.Certificates
			if c.spec.Converter.Kind() != "unknown" {
				spec.Converter = c.spec.Converter
			}
			w.applyCRDOf(c.group)
			if spec.Converter.None != nil {
				w.applyCRD(strings.Replace(equalVersions, "group: example.com", "group: "+c.group, 1))
			}
			w.converge()
			w.expectDeadlock(c.want)
		})
	}
}

func (w *world) expectDeadlock(want string) {
	w.t.Helper()
	status, got := w.observed.Policy.Status, ""
	condition := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConversionConfiguredCondition)
	if condition.Reason == v1alpha1.ReasonBootstrapDeadlock {
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
	w.fleets["blue"].spec.Certificates = &byCertManager
	w.move("blue")
	w.applyCRDOf("cert-manager.io")
	w.converge()
	w.expectDeadlock(v1alpha1.ReasonBootstrapDeadlock + " instead of ConverterFleet blue")
	w.move("green")
	w.converge()
	w.expectDeadlock("")
	w.expectDependency("", "")

	// A policy that converts continues, wherever it moves to, and whatever its fleet changes.
	w.fleets["green"].spec.Certificates = &byCertManager
	w.converge()
	w.expectDeadlock("")
	w.expectDependency(v1alpha1.ReasonCertificateIssuance, "set spec.certificates.selfManaged of ConverterFleet green")
	w.move("blue")
	w.converge()
	w.settleAPIServers()
	if named := w.named(); !strings.HasSuffix(named, ".blue") {
		t.Errorf("the CustomResourceDefinition names %s", named)
	}
	w.expectDependency(v1alpha1.ReasonCertificateIssuance, "set spec.certificates.selfManaged of ConverterFleet blue")
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

// TestBootstrapDependencies: active policies warn of converters that may need what they convert.
func TestBootstrapDependencies(t *testing.T) {
	hostNetwork := func(tolerations ...corev1.Toleration) v1alpha1.Workload {
		return v1alpha1.Workload{HostNetwork: true, Placement: v1alpha1.Placement{Tolerations: tolerations}}
	}
	notReady := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}
	notReadyForLong := corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	cases := map[string]struct {
		group        string
		workload     v1alpha1.Workload
		certificates v1alpha1.Certificates
		reason, says string
	}{
		"another kind":                     {group: "example.com"},
		"nodes":                            {group: "karpenter.sh", reason: v1alpha1.ReasonNodeProvisioning, says: "Karpenter reads objects of this kind to provision nodes"},
		"nodes, in the network of nodes":   {group: "karpenter.sh", workload: hostNetwork(everything), reason: v1alpha1.ReasonNodeProvisioning},
		"network":                          {group: "kubeovn.io", reason: v1alpha1.ReasonPodNetwork, says: "in spec.workload of the policy"},
		"network of nodes":                 {group: "kubeovn.io", workload: hostNetwork(), reason: v1alpha1.ReasonPodNetwork},
		"network of nodes, for long":       {group: "kubeovn.io", workload: hostNetwork(notReadyForLong), reason: v1alpha1.ReasonPodNetwork},
		"network of nodes without network": {group: "kubeovn.io", workload: hostNetwork(notReady)},
		"network of any nodes":             {group: "kubeovn.io", workload: hostNetwork(everything)},
		"any nodes":                        {group: "kubeovn.io", workload: v1alpha1.Workload{Placement: v1alpha1.Placement{Tolerations: []corev1.Toleration{everything}}}, reason: v1alpha1.ReasonPodNetwork},
		"network and Services":             {group: "cilium.io", reason: v1alpha1.ReasonPodNetwork, says: "to connect pods"},
		"only Services":                    {group: "cilium.io", workload: hostNetwork(notReady), reason: v1alpha1.ReasonPodNetwork, says: "if it takes the place of kube-proxy"},
		"admission":                        {group: "kyverno.io", reason: v1alpha1.ReasonPodAdmission, says: "exempt the namespace of the operator"},
		"certificates":                     {group: "cert-manager.io"},
		"certificates of a Secret":         {group: "cert-manager.io", certificates: bySecret, reason: v1alpha1.ReasonCertificateIssuance, says: "set spec.certificates.selfManaged of the policy"},
		"certificates with an injector":    {group: "acme.cert-manager.io", certificates: byInjector, reason: v1alpha1.ReasonCertificateIssuance},
		"approval of certificates":         {group: "policy.cert-manager.io", certificates: byCertManager, reason: v1alpha1.ReasonCertificateIssuance, says: "approver-policy"},
		"certificates of an issuer":        {group: "issuers.example.org", certificates: byExternalIssuer, reason: v1alpha1.ReasonCertificateIssuance, says: "cert-manager reads"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.observed.Policy.Spec.Workload, w.observed.Policy.Spec.Certificates = &c.workload, c.certificates
			w.observed.CRD.Spec.Group = c.group
			w.converge()
			w.expectDeadlock("")
			w.expectDependency(c.reason, c.says)

			// It is gone with the last version that needs a conversion.
			w.applyCRD(onlyNew)
			w.observed.CRD.Spec.Group, w.observed.CRD.Status.StoredVersions = c.group, []string{"v1"}
			w.converge()
			w.expectDependency("", "")
		})
	}
}

// TestBootstrapDependencyIsTold by one warning when API servers call the converter, and by another
// event when they no longer do.
func TestBootstrapDependencyIsTold(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.holdBack = true
	w.applyCRDOf("cilium.io")
	w.converge()
	w.expectDependency("", "")
	w.holdBack = false
	w.converge()
	w.changeRules("/")
	w.converge()
	w.expectDependency(v1alpha1.ReasonPodNetwork, "Cilium")
	w.observed.Policy.Spec.Suspend = true
	w.converge()
	w.expectDependency(v1alpha1.ReasonPodNetwork, "Cilium")
	w.change("kubectl-edit", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Namespace = "elsewhere" })
	w.converge()
	w.expectDependency("", "")
	var told []string
	for line := range strings.Lines(w.events.String()) {
		if strings.Contains(line, "BootstrapDependency") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "Warning PodNetwork") || !strings.HasPrefix(told[1], "Normal  BootstrapDependencyResolved") {
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
