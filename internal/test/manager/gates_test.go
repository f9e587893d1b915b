//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// failing is a gate that does not pass.
type failing struct {
	faults faults
	// objects exist before the policy: hostPort by name.
	objects map[string]string
	// change changes the policy before it is created.
	change func(*v1alpha1.ConversionPolicy)
	// repair fixes what does not recover by itself once the converter behaves.
	repair func(t *testing.T, policy string)

	reason  string
	message []string
}

func impatient(policy *v1alpha1.ConversionPolicy) {
	policy.Spec.Verification.Timeout = &metav1.Duration{Duration: 2 * time.Second}
}

// gates are failures of each kind of proof. The tests of package probe know more of them.
var gates = map[string]failing{
	"the pod hangs": {faults: faults{Manager: fault{Hang: true}}, reason: "Unreachable", message: []string{"converter pod", "timed out"}},
	"the pod converts wrongly": {
		faults: faults{Manager: fault{Replace: [2]string{`"host":"`, `"host":"x`}}},
		reason: "CanaryFailed", message: []string{".host"},
	},
	"a live object does not come back": {
		faults:  faults{Manager: fault{Replace: [2]string{`"host":"odd`, `"host":"even`}}},
		objects: map[string]string{"good": "a.example.com:1", "odd": "odd.example.com:2"}, repair: mendRules,
		reason:  v1alpha1.ReasonRoundTripFailed,
		message: []string{"object default/odd: .hostPort does not come back as it was from v1beta1 to v1 and back"},
	},
	"a live object is not converted": {
		faults:  faults{Manager: fault{Refuse: "odd.example.com"}},
		objects: map[string]string{"good": "a.example.com:1", "odd": "odd.example.com:2"}, repair: mendRules,
		reason:  v1alpha1.ReasonRoundTripFailed,
		message: []string{"object default/odd cannot be converted from v1beta1 to v1: conversion webhook for ", "hostPort of local has no port"},
	},
	"a live object comes back without its labels": {
		faults:  faults{Manager: fault{Replace: [2]string{`"labels":{"odd"`, `"label":{"odd"`}}},
		objects: map[string]string{"odd": "odd.example.com:2"}, repair: mendRules,
		reason:  v1alpha1.ReasonRoundTripFailed,
		message: []string{"object default/odd: .metadata.labels does not come back"},
	},
	"the API server gets no answer": {
		faults: faults{APIServer: fault{Hang: true}}, change: impatient,
		reason: "Unreachable", message: []string{"no answer within 2s", "firewall", "NetworkPolicy"},
	},
	"the API server is answered 404": {
		faults: faults{APIServer: fault{NotFound: true}},
		reason: "UnexpectedAnswer", message: []string{"could not find the requested resource", "404"},
	},
	"the API server is answered garbage": {
		faults: faults{APIServer: fault{Garbage: true}},
		reason: "UnexpectedAnswer", message: []string{"conversion webhook for probe.conversion-operator.io"},
	},
	"the API server is answered wrongly": {
		faults: faults{APIServer: fault{Replace: [2]string{"9007199254740993", "9007199254740992"}}},
		reason: "CanaryFailed", message: []string{".spec.number"},
	},
}

// TestGates makes gates fail: the condition names the cause, the CRD is not written and, once the cause is
// gone, it is written once.
func TestGates(t *testing.T) {
	t.Parallel()
	for name, gate := range gates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := dns(name) + ".gates.example.com"
			policy := "crontabs." + group
			before := define(t, group, "v1beta1", "v1")
			for name, hostPort := range gate.objects {
				createCronTab(t, group, "v1beta1", name, hostPort)
			}
			misbehave(t, policy, gate.faults)
			createPolicy(t, group, gate.change)
			waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, gate.reason, gate.message)
			after := getCRD(t, policy)
			if after.ResourceVersion != before.ResourceVersion || after.Generation != 1 {
				t.Errorf("the CustomResourceDefinition was written: generation %d, conversion %+v", after.Generation, after.Spec.Conversion)
			}
			misbehave(t, policy, faults{})
			if gate.repair != nil {
				gate.repair(t, policy)
			}
			waitReady(t, policy, v1alpha1.ReasonSucceeded)
			expect.Equal(t, "the CustomResourceDefinition has generation", 2, getCRD(t, policy).Generation)
			checkAtRest(t, policy)
		})
	}
}

// TestManagerDiesDuringProbe: a manager died and left the webhook of the operator's own kind
// pointed at a converter that is gone. The next manager probes normally.
func TestManagerDiesDuringProbe(t *testing.T) {
	const group = "died.example.com"
	patch(t, getCRD(t, probe.Definition), `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
		`"clientConfig":{"service":{"namespace":"gone","name":"gone","path":"/convert/gone","port":443}}}}}}`)
	define(t, group, "v1beta1", "v1")
	createPolicy(t, group, nil)
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
	expect.Eventually(t, "it is pointed back", func() (bool, string) {
		strategy := crds.Strategy(getCRD(t, probe.Definition))
		return strategy == apiextensionsv1.NoneConverter, string(strategy)
	})
}

// TestEveryVersionPair: sampled objects of several namespaces are converted to all of three
// versions, and read once.
func TestEveryVersionPair(t *testing.T) {
	t.Parallel()
	const group = "three.example.com"
	policy := "crontabs." + group
	define(t, group, "v1alpha1", "v1beta1", "v1")
	for i := range 7 {
		createCronTab(t, group, "v1alpha1", fmt.Sprintf("cron-%d", i), fmt.Sprintf("a.example.com:%d", i))
	}
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Verification.Samples = new(int32(5)) })
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonVerified,
		[]string{"6 version pairs; 5 live objects came back unchanged"})
	checkAtRest(t, policy)
}

// mendRules changes the policy's rules, so that objects are sampled again immediately.
func mendRules(t *testing.T, policy string) {
	t.Helper()
	patch(t, getPolicy(t, policy), `{"spec":{"converter":{"declarative":{"overflow":"Drop"}}}}`)
}
