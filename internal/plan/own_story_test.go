// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

const (
	imageYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {image: {reference: "example.com/crontab:1", port: 9443, path: /convert, certificateMountPath: /certs}, conversionReviewVersions: [v1]}
  migration: {mode: OnTrigger}
`
	serviceYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {service: {namespace: crontab-system, name: webhook, port: 443, path: /convert}, conversionReviewVersions: [v1]}
  migration: {mode: OnTrigger}
`
	urlYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {url: "https://converter.example.org/crontabs", conversionReviewVersions: [v1]}
  migration: {mode: OnTrigger}
`
	equalVersions = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}}}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}}}}}
`
	adopted = `
strategy: Webhook
webhook:
  clientConfig: {caBundle: Y2VydC1tYW5hZ2Vy, service: {namespace: crontab-system, name: webhook, path: /convert, port: 443}}
  conversionReviewVersions: [v1]
`
	noneYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter: {none: {}}
  migration: {mode: Automatic}
`
)

// TestOwnConverterStories plays the lives of converters that users bring.
func TestOwnConverterStories(t *testing.T) {
	stories := map[string]struct {
		policy string
		play   func(*world)
	}{
		"image":            {imageYAML, imageStory},
		"image-bad":        {imageYAML, badImages},
		"image-and-rules":  {policyYAML, imageAndRules},
		"service":          {serviceYAML, serviceStory},
		"service-adopted":  {serviceYAML, adoptedService},
		"url":              {urlYAML, urlStory},
		"none":             {noneYAML, noneStory},
		"none-after-image": {imageYAML, noneAfterImage},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, story.policy)
			story.play(w)
			checkStory(t, name, w)
		})
	}
}

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

// settleAPIServers lets API servers follow the last change.
func (w *world) settleAPIServers() {
	w.t.Helper()
	w.observed.Now = w.observed.Now.Add(w.observed.Settings.PropagationDelay)
	w.converge()
}

func imageStory(w *world) {
	w.say("A converter image is deployed, proven and active.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("Another version of the image: its pods start beside those that serve.")
	w.useImage("example.com/crontab:2")
	w.converge()
	w.say("API servers have had their time.")
	w.settleAPIServers()
	w.say("There and back: the previous pods are still there.")
	w.useImage("example.com/crontab:3")
	w.converge()
	w.useImage("example.com/crontab:2")
	w.converge()
	w.say("Another path needs no other pods.")
	w.observed.Policy.Spec.Converter.Image.Path = "/v2/convert"
	w.settleAPIServers()
	w.say("More images than there are ports for, in a short time.")
	for _, image := range []string{"4", "5", "6", "7"} {
		w.useImage("example.com/crontab:" + image)
		w.converge()
	}
	w.settleAPIServers()
	w.say("Another number of pods is no other converter.")
	w.observed.Policy.Spec.Workload.Replicas = new(int32(3))
	w.converge()
}

func badImages(w *world) {
	w.say("The first image cannot be pulled.")
	w.holdBack = true
	w.applyCRD(bothStoredNew)
	w.converge()
	identity := w.observed.Revisions[0].Hash
	w.observed.Pods = []observed.Pod{{Name: "crontab-1", Revisions: []string{identity}, Image: true, Trouble: observed.PodTrouble{Message: "the image example.com/crontab:1 cannot be pulled"}}}
	w.converge()
	w.say("It is corrected.")
	w.holdBack = false
	w.useImage("example.com/crontab:2")
	w.converge()
	w.say("Another version answers wrongly: nothing that serves is touched.")
	w.misbehave = "the answer has another metadata.name"
	w.useImage("example.com/crontab:3")
	w.converge()
	w.say("A patch cannot be applied.")
	w.observed.Policy.Spec.Workload.Patches = []v1alpha1.Patch{{Patch: "what?"}}
	w.converge()
	w.say("The previous image comes back.")
	w.observed.Policy.Spec.Workload.Patches = nil
	w.misbehave = ""
	w.useImage("example.com/crontab:2")
	w.converge()
	w.settleAPIServers()
	w.say("All its pods are lost.")
	w.observed.Pods = nil
	w.holdBack = true
	w.converge()
}

func imageAndRules(w *world) {
	w.say("Rules are active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
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
	w.observed.External = observed.External{Reason: v1alpha1.ReasonServiceNotFound, Message: "Service crontab-system/webhook does not exist"}
	w.applyCRD(bothStoredNew)
	w.converge()
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
	w.write("helm", conversion)
	w.answerAt("10.0.0.1:9443", "x509: certificate signed by unknown authority")
	w.converge()
	w.say("It serves the certificate that the operator issued for it.")
	w.answerAt("10.0.0.1:9443", "")
	w.converge()
}

func urlStory(w *world) {
	w.say("A converter outside the cluster.")
	w.answerAt("converter.example.org:443", "")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("It moves.")
	w.observed.Policy.Spec.Converter.URL = "https://converter.example.org/v2/crontabs"
	w.converge()
}

func noneStory(w *world) {
	w.say("Versions have different fields.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("Some of them may be lost.")
	w.observed.Policy.Spec.Converter.None.AcceptedLosses = []string{".hostPort", ".port"}
	w.converge()
	w.say("All of them may be lost.")
	w.observed.Policy.Spec.Converter.None.AcceptedLosses = []string{".hostPort", ".host", ".port"}
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 2, Rewritten: 2}})
	w.converge()
	w.say("The CustomResourceDefinition gets other fields.")
	w.applyCRD(bothStoredOld)
	w.converge()
	w.applyCRD(equalVersions)
	w.converge()
}

func noneAfterImage(w *world) {
	w.say("An image converts.")
	w.applyCRD(equalVersions)
	w.converge()
	w.say("It is not needed: the schemas are equal.")
	w.convertBy(noneYAML)
	w.converge()
	w.say("API servers have had their time.")
	w.settleAPIServers()
	w.say("The image comes back.")
	w.convertBy(imageYAML)
	w.converge()
}
