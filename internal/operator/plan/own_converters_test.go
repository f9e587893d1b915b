// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// theirs is the conversion of a client who has nothing to do with the policy.
func theirs(t *testing.T) *apiextensionsv1.CustomResourceConversion {
	t.Helper()
	conversion := &apiextensionsv1.CustomResourceConversion{}
	read(t, "{strategy: Webhook, webhook: {clientConfig: {url: 'https://theirs.example.com'}, conversionReviewVersions: [v1]}}", conversion)
	return conversion
}

// TestImageIdentity: what shapes the pods makes another converter of it, and nothing else does.
func TestImageIdentity(t *testing.T) {
	identity := func(change func(*v1alpha1.ConversionPolicySpec)) string {
		w := newWorld(t, imageYAML)
		change(&w.observed.Policy.Spec)
		w.define(bothStoredNew)
		return w.observed.Policy.Status.Revision
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
		"node": func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Workload.Dedicated.NodeSelector = map[string]string{"a": "b"}
		},
		"patch": func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Workload.Dedicated.Patches = []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Deployment"},
				Patch: `[{"op": "add", "path": "/spec/template/spec/runtimeClassName", "value": "gvisor"}]`}}
		},
	}
	for name, change := range others {
		expect.Equal(t, "another "+name+" makes no other converter", false, identity(change) == plain)
	}
	same := map[string]func(*v1alpha1.ConversionPolicySpec){
		"replicas": func(spec *v1alpha1.ConversionPolicySpec) { spec.Workload.Dedicated.Replicas = new(int32(5)) },
		"path":     func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.Path = "/other" },
		"patch of the Service": func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Workload.Dedicated.Patches = []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Service"}, Patch: `[{"op": "add", "path": "/spec/type", "value": "NodePort"}]`}}
		},
	}
	for name, change := range same {
		expect.Equal(t, "converter with another "+name, plain, identity(change))
	}
}

// accountChanges: an image does not run with an account of the operator, whatever its installation names
// them. The converter that serves does not change.
func accountChanges() changes {
	all := changes{}
	for _, account := range []string{
		"platform-conversion-operator",
		"platform-conversion-operator-converter",
		names.MigrationRights(crontabs),
		names.MigrationRights("others.example"),
		names.ReadRights(crontabs),
		names.CleanRights(crontabs),
		"platform-dependents",
		names.DependentsAccount,
		"conversion-operator",
		"theirs",
		"theirs-migrate",
	} {
		all[account] = func(w *world) {
			w.observed.Settings.ManagerAccount, w.observed.Settings.ConverterAccount = "platform-conversion-operator", "platform-conversion-operator-converter"
			w.observed.Settings.DependentsAccount = "platform-dependents"
			w.observed.Policy.Spec.Converter.Image.ServiceAccountName = account
		}
	}
	return all
}

// TestImageWithoutWorkload: an image has pods with the default resources.
func TestImageWithoutWorkload(t *testing.T) {
	w := newWorld(t, imageYAML)
	w.observed.Policy.Spec.Workload = nil
	w.define(bothStoredNew)
	d := applied[appsv1apply.DeploymentApplyConfiguration](t, w.plan().Steps)
	if limits := d.Spec.Template.Spec.Containers[0].Resources.Limits; limits == nil || limits.Memory().String() != "256Mi" {
		t.Errorf("limits are %v", limits)
	}
}

// TestEvictionsOfABadImage: pods that never become ready do not count for those that serve.
func TestEvictionsOfABadImage(t *testing.T) {
	w := activeBy(t, imageYAML)
	serving := w.observed.Policy.Status.Revision
	w.Misbehave = "it is bad"
	w.runImage("example.com/crontab:2")
	expect.Equal(t, "evictions are counted among pods of", serving, budgetOf(t, w).Spec.Selector.MatchLabels[names.RevisionLabel])
}

// TestMigrationWithoutConversion: a run goes on where nothing needs to be converted,
// and is stopped where a client switches a webhook on.
func TestMigrationWithoutConversion(t *testing.T) {
	w := newWorld(t, noneYAML)
	w.define(equalVersions)
	w.reports(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 3, Rewritten: 1}})
	if steps := kinds(w.plan().Steps); slices.Contains(steps, "SuspendRun") || slices.Contains(steps, "DeleteRun") {
		t.Errorf("the run is stopped: %v", steps)
	}
	w.Write("helm", theirs(t))
	expect.Equal(t, "the run is stopped while a client converts", true, slices.Contains(kinds(w.plan().Steps), "DeleteRun"))
}

// TestAdoptionIsNoDrift: a webhook that the policy names, and another client set up,
// is not written before it is proven, and not when the policy is deleted before that.
func TestAdoptionIsNoDrift(t *testing.T) {
	w := newWorld(t, serviceYAML)
	w.applyCRD(bothStoredNew)
	conversion := &apiextensionsv1.CustomResourceConversion{}
	read(t, adopted, conversion)
	w.Write("helm", conversion)
	w.answerAt("10.0.0.1:9443", "x509: certificate signed by unknown authority")
	w.converge()
	expectCondition(t, w.observed.Policy.Status, "ConversionVerified", "False", "TLSVerificationFailed", "unknown authority")
	expect.Equal(t, "the conversion was changed", conversion, w.observed.CRD.Spec.Conversion)
	w.delete()
	expect.Equal(t, "steps of leaving", []string{"DeleteChildren", "RemoveFinalizer"}, kinds(w.plan().Steps))
}

const (
	imageYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {type: Image, image: {reference: "example.com/crontab:1", port: 9443, path: /convert, certificateMountPath: /certs}, conversionReviewVersions: [v1]}
  migration: {mode: OnTrigger}
`
	serviceYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {type: Service, service: {namespace: crontab-system, name: webhook, port: 443, path: /convert}, conversionReviewVersions: [v1]}
  migration: {mode: OnTrigger}
`
	urlYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {type: URL, url: {url: "https://converter.example.org/crontabs"}, conversionReviewVersions: [v1]}
  migration: {mode: OnTrigger}
`
	equalVersions = kind + "  - {name: v1beta1, served: true, storage: false, " + equalSchema + "  - {name: v1, served: true, storage: true, " + equalSchema
	equalSchema   = "schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}}}}}\n"
	adopted       = `
strategy: Webhook
webhook:
  clientConfig: {caBundle: Y2VydC1tYW5hZ2Vy, service: {namespace: crontab-system, name: webhook, path: /convert, port: 443}}
  conversionReviewVersions: [v1]
`
	noneYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {type: None, none: {}}
  migration: {mode: Automatic}
`
)

// convertBy changes the kind of converter.
func (w *world) convertBy(policy string) {
	w.t.Helper()
	other := &v1alpha1.ConversionPolicy{}
	read(w.t, policy, other)
	w.observed.Policy.Spec.Converter = other.Spec.Converter
	w.observed.Policy.Generation++
}

// useImage changes the image.
func (w *world) useImage(image string) {
	w.observed.Policy.Spec.Converter.Image.Reference = image
	w.observed.Policy.Generation++
}

func imageStory(w *world) {
	w.say("A converter image is deployed, proven and active.")
	w.define(bothStoredNew)
	w.say("Another version of the image: its pods start beside those that serve.")
	w.runImage("example.com/crontab:2")
	w.say("API servers have had their time.")
	w.settleAPIServers()
	w.say("There and back: the previous pods are still there.")
	w.runImage("example.com/crontab:3")
	w.runImage("example.com/crontab:2")
	w.say("Another path needs no other pods.")
	w.observed.Policy.Spec.Converter.Image.Path = "/v2/convert"
	w.settleAPIServers()
	w.say("More images than there are ports for, in a short time.")
	for _, image := range []string{"4", "5", "6", "7"} {
		w.runImage("example.com/crontab:" + image)
	}
	w.settleAPIServers()
	w.say("Another number of pods is no other converter.")
	w.observed.Policy.Spec.Workload.Dedicated.Replicas = new(int32(3))
	w.converge()
}

func badImages(w *world) {
	w.say("The first image cannot be pulled.")
	w.HoldBack = true
	w.define(bothStoredNew)
	identity := w.observed.Revisions[0].Hash
	w.observed.Pods = []observed.Pod{{Name: "crontab-1", Revisions: []string{identity}, Image: true, Trouble: observed.PodTrouble{Message: "the image example.com/crontab:1 cannot be pulled"}}}
	w.converge()
	w.say("It is corrected.")
	w.HoldBack = false
	w.runImage("example.com/crontab:2")
	w.say("Another version answers wrongly: nothing that serves is touched.")
	w.Misbehave = "the answer has another metadata.name"
	w.runImage("example.com/crontab:3")
	w.say("A patch cannot be applied.")
	w.observed.Policy.Spec.Workload.Dedicated.Patches = []v1alpha1.Patch{{Patch: "what?"}}
	w.converge()
	w.say("The previous image comes back.")
	w.observed.Policy.Spec.Workload.Dedicated.Patches = nil
	w.Misbehave = ""
	w.runImage("example.com/crontab:2")
	w.settleAPIServers()
	w.say("All its pods are lost.")
	w.observed.Pods = nil
	w.HoldBack = true
	w.converge()
}

func imageAndRules(w *world) {
	w.say("Rules are active.")
	w.activate(bothStoredNew)
	w.say("An image takes over.")
	w.convertBy(imageYAML)
	w.converge()
	w.say("API servers have had their time: the pods with the rules go.")
	w.settleAPIServers()
	w.say("Rules take over again.")
	w.convertBy(policyYAML)
	w.converge()
	w.settleAPIServers()
	w.say("A Service takes over: nothing is deployed in the end.")
	w.convertBy(serviceYAML)
	w.answerAt("10.0.0.1:9443", "")
	w.converge()
	w.settleAPIServers()
}

// answerAt lets a converter that users run answer at one endpoint.
func (w *world) answerAt(endpoint, failure string) {
	proof := observed.Proof{}
	if failure != "" {
		proof = observed.Proof{Reason: "TLSVerificationFailed", Message: failure}
	}
	w.observed.External = observed.External{Endpoints: []observed.Pod{{Name: endpoint, Ready: true, Scheduled: true, Proof: &proof}}}
}

func serviceStory(w *world) {
	w.say("There is no Service.")
	w.observed.External = observed.External{Reason: v1alpha1.ReasonNotFound, Message: "Service crontab-system/webhook does not exist"}
	w.define(bothStoredNew)
	w.say("It has no endpoints.")
	w.observed.External = observed.External{}
	w.converge()
	w.say("It has one, with another certificate.")
	w.answerAt("10.0.0.1:9443", "x509: certificate signed by unknown authority")
	w.converge()
	w.say("It serves the certificate that the operator issued for it.")
	w.answerAt("10.0.0.1:9443", "")
	w.converge()
	w.say("The policy names another Service.")
	w.observed.Policy.Spec.Converter.Service.Name = "webhook-2"
	w.converge()
	w.settleAPIServers()
	w.say("Its endpoints are lost.")
	w.observed.External = observed.External{}
	w.converge()
}

func adoptedService(w *world) {
	w.say("A CustomResourceDefinition converts through a Service already, which serves a certificate that another client issued.")
	w.applyCRD(bothStoredNew)
	conversion := &apiextensionsv1.CustomResourceConversion{}
	read(w.t, adopted, conversion)
	w.Write("helm", conversion)
	w.answerAt("10.0.0.1:9443", "x509: certificate signed by unknown authority")
	w.converge()
	w.say("It serves the certificate that the operator issued for it.")
	w.answerAt("10.0.0.1:9443", "")
	w.converge()
}

func urlStory(w *world) {
	w.say("A converter outside the cluster.")
	w.answerAt("converter.example.org:443", "")
	w.define(bothStoredNew)
	w.say("It moves.")
	w.observed.Policy.Spec.Converter.URL.URL = "https://converter.example.org/v2/crontabs"
	w.converge()
}

func noneStory(w *world) {
	w.say("Versions have different fields.")
	w.define(bothStoredNew)
	w.say("Some of them may be lost.")
	w.observed.Policy.Spec.Converter.None.AcceptedLosses = []string{".hostPort", ".port"}
	w.converge()
	w.say("All of them may be lost.")
	w.observed.Policy.Spec.Converter.None.AcceptedLosses = []string{".hostPort", ".host", ".port"}
	w.converge()
	w.completes(2)
	w.say("The CustomResourceDefinition gets other fields.")
	w.define(bothStoredOld)
	w.define(equalVersions)
}

func noneAfterImage(w *world) {
	w.say("An image converts.")
	w.define(equalVersions)
	w.say("It is not needed: the schemas are equal.")
	w.convertBy(noneYAML)
	w.converge()
	w.say("API servers have had their time.")
	w.settleAPIServers()
	w.say("The image comes back.")
	w.convertBy(imageYAML)
	w.converge()
}
