// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

func lostSample(w *world) {
	w.say("A live object does not come back as it was.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.samples = observed.BackgroundCheck{Lost: true, Reason: v1alpha1.ReasonRoundTripFailed,
		Message: "default/odd: .hostPort does not come back from v1beta1 to v1 and back"}
	w.applyCRD(bothStoredOld)
	w.converge()
	w.say("No one looks again at once, but after a while, in case that the object was fixed.")
	w.converge()
	w.observed.Now = w.observed.Now.Add(5 * time.Minute)
	w.converge()
	w.say("The rules are fixed: that is another matter, and it is tried at once.")
	w.samples = observed.BackgroundCheck{Objects: 3}
	w.changeRules("/")
	w.converge()
	w.say("Pods are replaced, the same is written, and nothing is tried again.")
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("of another client")
	w.observed.CRD.Generation++
	w.converge()
}

func unreachable(w *world) {
	w.say("The converter's pods are fine, but the API server does not reach them.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.apiServer = observed.BackgroundCheck{Reason: "Timeout", Message: "context deadline exceeded: a firewall?"}
	w.applyCRD(bothStoredOld)
	w.converge()
	w.say("It is asked again, after longer and longer times.")
	for _, wait := range []time.Duration{3 * time.Second, 8 * time.Second, 18 * time.Second} {
		w.observed.Now = w.observed.Now.Add(wait)
		w.converge()
		w.observed.Now = w.observed.Now.Add(time.Second)
		w.converge()
	}
	w.say("The firewall is opened.")
	w.apiServer = observed.BackgroundCheck{}
	w.observed.Now = w.observed.Now.Add(time.Minute)
	w.converge()
	w.say("Another client asks for no such proof, and has none.")
	w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
	w.apiServer = observed.BackgroundCheck{Reason: "Timeout", Message: "a firewall"}
	w.changeRules("/")
	w.converge()
}

func versionFirst(w *world) {
	w.say("A CustomResourceDefinition has one version, and a policy whose pods do not start yet.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.holdBack = true
	w.applyCRD(onlyOld)
	w.converge()
	w.say("Its author does not wait: the new version is served now.")
	w.applyCRD(bothStoredOld)
	w.converge()
	w.say("The pods are there. Two objects were written at the new version meanwhile.")
	w.holdBack = false
	w.written = observed.BackgroundCheck{Objects: 2, Names: []string{"default/a", "default/b"}}
	w.converge()
}

func storageAtOnce(w *world) {
	w.say("A CustomResourceDefinition has one version, and a policy whose pods do not start yet.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.holdBack = true
	w.applyCRD(onlyOld)
	w.converge()
	w.say("The new version is added and stored at once: any write may be wrong now.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The pods are there.")
	w.holdBack = false
	w.written = observed.BackgroundCheck{Objects: 12, Names: []string{"default/a", "default/b"}}
	w.converge()
}

func policyAfter(w *world) {
	w.say("A CustomResourceDefinition serves two versions, and has no policy for long.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.say("A policy comes. When the second version came no one knows, so all that was written counts.")
	w.converge()
	w.say("It is suspended, and goes on: nothing is counted twice.")
	w.observed.Policy.Spec.Suspend = true
	w.converge()
	w.observed.Policy.Spec.Suspend = false
	w.converge()
}
