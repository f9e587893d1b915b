// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// activeBy is a world in which a converter that a user brings is active.
func activeBy(t *testing.T, policy string) *world {
	t.Helper()
	w := newWorld(t, policy)
	w.answerAt("10.0.0.1:9443", "")
	w.applyCRD(bothStoredNew)
	w.converge()
	return w
}

// theirs is the conversion of a client who has nothing to do with the policy.
func theirs(t *testing.T) *apiextensionsv1.CustomResourceConversion {
	t.Helper()
	conversion := &apiextensionsv1.CustomResourceConversion{}
	read(t, "{strategy: Webhook, webhook: {clientConfig: {url: 'https://theirs.example.com'}, conversionReviewVersions: [v1]}}", conversion)
	return conversion
}

// TestOwnGates changes one thing where a converter of a user's is active.
func TestOwnGates(t *testing.T) {
	cases := map[string]struct {
		policy                             string
		change                             func(*world)
		condition, status, reason, message string
		steps                              []string
	}{
		"image: all is well": {imageYAML, func(*world) {}, "Ready", "True", "Succeeded", "", nil},
		"image: no structure": {imageYAML, func(w *world) { w.observed.CRD.Spec.PreserveUnknownFields = true },
			"RulesValid", "False", "PreserveUnknownFields", "set it to false", nil},
		"image: one pod left": {imageYAML, func(w *world) { w.observed.Pods = w.observed.Pods[:1] },
			"WebhookAvailable", "True", "SomePodsReady", "1 of 2", nil},
		"image: no endpoint": {imageYAML, func(w *world) { w.observed.PortEndpoints = nil },
			"WebhookAvailable", "False", "WaitingForEndpoints", "for port 444", nil},
		"image: a warning": {imageYAML, func(w *world) { w.observed.Pods[1].Proof = &observed.Proof{Warning: ".spec.note is gone"} },
			"ConversionVerified", "True", "Verified", "warning: .spec.note is gone", nil},
		"image: the conversion was dropped": {imageYAML, func(w *world) { w.drop("kubectl-replace") },
			"ConversionConfigured", "False", "ConversionDrifted", "to strategy None", []string{"RecordDrift", "SwitchCRD"}},
		"image: another client converts": {imageYAML, func(w *world) { w.write("helm", theirs(w.t)) },
			"ConversionConfigured", "False", "ConversionDrifted", "at https://theirs.example.com", []string{"RecordDrift", "SwitchCRD"}},
		"image: reviews of another version": {imageYAML, func(w *world) {
			w.observed.Policy.Spec.Converter.ConversionReviewVersions = []v1alpha1.ReviewVersion{"v1beta1"}
		}, "ConversionVerified", "False", "Sampling", "100 live objects", []string{"TakeSamples"}},
		"image: reviews of another version, unproven": {imageYAML, func(w *world) {
			w.observed.Policy.Spec.Converter.ConversionReviewVersions = []v1alpha1.ReviewVersion{"v1beta1"}
			w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
		}, "ConversionConfigured", "False", "Configuring", "", []string{"SwitchCRD"}},
		"service: all is well": {serviceYAML, func(*world) {}, "Ready", "True", "Succeeded", "", nil},
		"service: another certificate": {serviceYAML, func(w *world) { w.answerAt("10.0.0.1:9443", "x509: unknown authority") },
			"ConversionVerified", "False", "TLSVerificationFailed", "endpoint 10.0.0.1:9443 of Service crontab-system/webhook: x509", nil},
		"service: not probed": {serviceYAML, func(w *world) { w.observed.External.Endpoints[0].Proof = nil },
			"ConversionVerified", "False", "Probing", "endpoint 10.0.0.1:9443", nil},
		"service: the conversion was dropped": {serviceYAML, func(w *world) { w.drop("kubectl-replace") },
			"ConversionConfigured", "False", "ConversionDrifted", "to strategy None", []string{"RecordDrift", "SwitchCRD"}},
		"service: the conversion was dropped, and nothing answers": {serviceYAML, func(w *world) {
			w.drop("kubectl-replace")
			w.observed.External = observed.External{}
		}, "WebhookAvailable", "False", "WaitingForEndpoints", "no ready endpoint", nil},
		"service: another client converts": {serviceYAML, func(w *world) { w.write("helm", theirs(w.t)) },
			"ConversionConfigured", "False", "ConversionDrifted", "at https://theirs.example.com", []string{"RecordDrift", "SwitchCRD"}},
		"url: all is well": {urlYAML, func(*world) {}, "Ready", "True", "Succeeded", "", nil},
		"none: a webhook of a client's": {noneYAML, func(w *world) {
			w.applyCRD(equalVersions)
			w.write("helm", theirs(w.t))
		}, "ConversionConfigured", "False", "ForeignWebhook", "https://theirs.example.com", nil},
		"none: a version that is not in use differs": {noneYAML, func(w *world) {
			w.observed.CRD.Spec.Versions[0].Served = false
			w.observed.CRD.Status.StoredVersions = []string{"v1"}
		}, "RulesValid", "True", "SchemasEqual", "", []string{"Create"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := activeBy(t, c.policy)
			c.change(w)
			decided := w.plan()
			expectCondition(t, decided.Status, c.condition, c.status, c.reason, c.message)
			if diff := cmp.Diff(c.steps, kinds(decided.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnConverterStays: without an event, the manager looks again at what no event
// tells of.
func TestOwnConverterStays(t *testing.T) {
	for name, policy := range map[string]string{"service": serviceYAML, "url": urlYAML} {
		t.Run(name, func(t *testing.T) {
			if again := activeBy(t, policy).plan().RecheckAfter; again == 0 || again.Seconds() > 30 {
				t.Errorf("looks again after %s", again)
			}
		})
	}
}

// TestImageIdentity: what shapes the pods makes another converter of it, and nothing else does.
func TestImageIdentity(t *testing.T) {
	identity := func(change func(*v1alpha1.ConversionPolicySpec)) string {
		w := newWorld(t, imageYAML)
		change(&w.observed.Policy.Spec)
		w.applyCRD(bothStoredNew)
		w.converge()
		return w.observed.Policy.Status.Converter.Revision
	}
	plain := identity(func(*v1alpha1.ConversionPolicySpec) {})
	others := map[string]func(*v1alpha1.ConversionPolicySpec){
		"image":   func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Reference = "other" },
		"command": func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Command = []string{"/other"} },
		"args":    func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Args = []string{"--other"} },
		"env": func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Converter.Image.Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		},
		"port":    func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Port = 8443 },
		"mount":   func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.CertificateMountPath = "/other" },
		"account": func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.ServiceAccountName = "other" },
		"node":    func(spec *v1alpha1.ConversionPolicySpec) { spec.Workload.NodeSelector = map[string]string{"a": "b"} },
		"patch": func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Workload.Patches = []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Deployment"},
				Patch: `[{"op": "add", "path": "/spec/template/spec/runtimeClassName", "value": "gvisor"}]`}}
		},
	}
	for name, change := range others {
		if identity(change) == plain {
			t.Errorf("another %s makes no other converter", name)
		}
	}
	same := map[string]func(*v1alpha1.ConversionPolicySpec){
		"replicas": func(spec *v1alpha1.ConversionPolicySpec) { spec.Workload.Replicas = new(int32(5)) },
		"path":     func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Path = "/other" },
		"patch of the Service": func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Workload.Patches = []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Service"}, Patch: `[{"op": "add", "path": "/spec/type", "value": "NodePort"}]`}}
		},
	}
	for name, change := range same {
		if identity(change) != plain {
			t.Errorf("another %s makes another converter", name)
		}
	}
}

// TestOperatorAccounts: an image does not run with an account of the operator, whatever its
// installation names them. The converter that serves does not change.
func TestOperatorAccounts(t *testing.T) {
	cases := map[string]bool{
		"platform-conversion-operator":           true,
		"platform-conversion-operator-converter": true,
		names.MigrationRights(crontabs):          true,
		names.MigrationRights("others.example"):  true,
		names.ReadRights(crontabs):               true,
		names.CleanRights(crontabs):              true,
		"platform-dependents":                    true,
		names.DependentsAccount:                  true,
		"conversion-operator":                    false,
		"theirs":                                 false,
		"theirs-migrate":                         false,
	}
	for account, refused := range cases {
		t.Run(account, func(t *testing.T) {
			w := activeBy(t, imageYAML)
			w.observed.Settings.ManagerAccount, w.observed.Settings.ConverterAccount = "platform-conversion-operator", "platform-conversion-operator-converter"
			w.observed.Settings.DependentsAccount = "platform-dependents"
			w.observed.Policy.Spec.Converter.Image.ServiceAccountName = account
			decided := w.plan()
			deployment := applied[appsv1apply.DeploymentApplyConfiguration](t, decided.Steps)
			if !refused {
				if deployment == nil || *deployment.Spec.Template.Spec.ServiceAccountName != account {
					t.Errorf("the Deployment is %v", deployment)
				}
				return
			}
			expectCondition(t, decided.Status, "RulesValid", "False", "InvalidServiceAccount", "spec.converter.image.serviceAccountName: "+account+" belongs to the operator")
			expectCondition(t, decided.Status, "Stalled", "True", "InvalidServiceAccount", "")
			if got := kinds(decided.Steps); got != nil || deployment != nil {
				t.Errorf("steps are %v, the Deployment is %v", got, deployment)
			}
		})
	}
}

// TestImagePods: an image gets the certificate where it looks for it, and a token only
// with an account of its own; patches may change what is its author's.
func TestImagePods(t *testing.T) {
	w := newWorld(t, imageYAML)
	w.observed.Policy.Spec.Converter.Image.ServiceAccountName = "reader"
	read(t, `
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: any}
    spec: {template: {spec: {securityContext: {runAsUser: 1234}, containers: [{name: converter, image: another, imagePullPolicy: Always}]}}}
`, &w.observed.Policy.Spec.Workload.Patches)
	w.applyCRD(bothStoredNew)
	w.converge()
	d := applied[appsv1apply.DeploymentApplyConfiguration](t, w.plan().Steps)
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	if *pod.ServiceAccountName != "reader" || !*pod.AutomountServiceAccountToken || *pod.SecurityContext.RunAsUser != 1234 || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod is %+v", pod)
	}
	if *container.Image != "example.com/crontab:1" || *container.ImagePullPolicy != "Always" || *container.VolumeMounts[0].MountPath != "/certs" {
		t.Errorf("the container is %+v", container)
	}
	identity := w.observed.Policy.Status.Converter.Revision
	for what, labels := range map[string]map[string]string{
		"Deployment": d.Labels, "pods": d.Spec.Template.Labels, "selector": d.Spec.Selector.MatchLabels, "PodDisruptionBudget": budgetOf(t, w).Spec.Selector.MatchLabels,
	} {
		if labels[names.RevisionLabel] != identity {
			t.Errorf("%s has the labels %v, want the identity %s", what, labels, identity)
		}
	}
	service := serviceOf(t, w)
	if len(service.Spec.Ports) != 1 || *service.Spec.Ports[0].Port != 444 || service.Spec.Ports[0].TargetPort.StrVal != *container.Ports[0].Name {
		t.Errorf("the Service's ports are %+v, the container's %+v", service.Spec.Ports, container.Ports)
	}
}

// TestImageWithoutWorkload: an image has pods with the default resources.
func TestImageWithoutWorkload(t *testing.T) {
	w := newWorld(t, imageYAML)
	w.observed.Policy.Spec.Workload = nil
	w.applyCRD(bothStoredNew)
	w.converge()
	d := applied[appsv1apply.DeploymentApplyConfiguration](t, w.plan().Steps)
	if limits := d.Spec.Template.Spec.Containers[0].Resources.Limits; limits == nil || limits.Memory().String() != "256Mi" {
		t.Errorf("limits are %v", limits)
	}
}

// TestEvictionsOfABadImage: pods that never become ready do not count for those that serve.
func TestEvictionsOfABadImage(t *testing.T) {
	w := activeBy(t, imageYAML)
	serving := w.observed.Policy.Status.Converter.Revision
	w.misbehave = "it is bad"
	w.useImage("example.com/crontab:2")
	w.converge()
	if got := budgetOf(t, w).Spec.Selector.MatchLabels[names.RevisionLabel]; got != serving {
		t.Errorf("evictions are counted among pods of %s, want %s", got, serving)
	}
}

// TestMigrationWithoutConversion: a run goes on where nothing needs to be converted,
// and is stopped where a client switches a webhook on.
func TestMigrationWithoutConversion(t *testing.T) {
	w := newWorld(t, noneYAML)
	w.applyCRD(equalVersions)
	w.converge()
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 3, Rewritten: 1}})
	w.converge()
	if steps := kinds(w.plan().Steps); slices.Contains(steps, "SuspendRun") || slices.Contains(steps, "DeleteRun") {
		t.Errorf("the run is stopped: %v", steps)
	}
	w.write("helm", theirs(t))
	if steps := kinds(w.plan().Steps); !slices.Contains(steps, "DeleteRun") {
		t.Errorf("the run goes on while a client converts: %v", steps)
	}
}

// TestLeavingOwnConverters: a policy whose objects need its converter stays, and one
// that converts nothing goes.
func TestLeavingOwnConverters(t *testing.T) {
	cases := map[string]struct {
		policy string
		want   string
	}{
		"image":   {imageYAML, "True"},
		"service": {serviceYAML, "True"},
		"none":    {noneYAML, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := activeBy(t, c.policy)
			w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
			decided := w.plan()
			if c.want == "" {
				if diff := cmp.Diff([]string{"DeleteChildren", "RemoveFinalizer"}, kinds(decided.Steps)); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				return
			}
			expectCondition(t, decided.Status, v1alpha1.DeletionBlockedCondition, c.want, v1alpha1.ReasonVersionsInUse, "is served")
		})
	}
}

// TestAdoptionIsNoDrift: a webhook that the policy names, and another client set up,
// is not written before it is proven, and not when the policy is deleted before that.
func TestAdoptionIsNoDrift(t *testing.T) {
	w := newWorld(t, serviceYAML)
	w.applyCRD(bothStoredNew)
	conversion := &apiextensionsv1.CustomResourceConversion{}
	read(t, adopted, conversion)
	w.write("helm", conversion)
	w.answerAt("10.0.0.1:9443", "x509: certificate signed by unknown authority")
	w.converge()
	expectCondition(t, w.observed.Policy.Status, "ConversionVerified", "False", "TLSVerificationFailed", "unknown authority")
	if diff := cmp.Diff(conversion, w.observed.CRD.Spec.Conversion); diff != "" {
		t.Errorf("the conversion was changed (-want +got):\n%s", diff)
	}
	w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
	if diff := cmp.Diff([]string{"DeleteChildren", "RemoveFinalizer"}, kinds(w.plan().Steps)); diff != "" {
		t.Errorf("steps of leaving (-want +got):\n%s", diff)
	}
}
