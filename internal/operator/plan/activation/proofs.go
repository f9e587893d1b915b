// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Before spec.conversion changes, two background checks must pass: live objects survive a round
// trip through the converter pods, and an API server reaches them. status.verification records
// the results, so that neither check is repeated for the same conversion, also by another
// manager.

const (
	defaultSamples = 100
	// defaultTimeout is longer than the 30 s timeout of API servers for a conversion.
	defaultTimeout = 45 * time.Second
)

// prove starts the checks that the change of spec.conversion waits for, one after the other.
func (a *Activation) prove(wanted *apiextensionsv1.CustomResourceConversion) gate.Outcome {
	known := a.knownOf(wanted)
	if known.Samples == nil {
		if sampled := a.sample(known, wanted); sampled.Stop {
			return sampled
		}
	}
	if !known.APIServerProbe && a.wantsAPIServerProbe() {
		return a.probeAPIServer(known, wanted)
	}
	return gate.Outcome{}
}

// knownOf is what is known of a conversion, in the status.
func (a *Activation) knownOf(wanted *apiextensionsv1.CustomResourceConversion) *v1alpha1.VerificationStatus {
	before := a.Status.Verification
	if subject := a.Subject(wanted); before == nil || before.Subject != subject {
		a.Status.Verification = &v1alpha1.VerificationStatus{Subject: subject, APIServerProbe: before != nil && before.APIServerProbe && a.onlyPath(wanted)}
	}
	return a.Status.Verification
}

// onlyPath reports that API servers call the same pods already, at the path of another ruleset. What an
// API server needs to reach them stays the same, and clients of a new version wait for the switch.
func (a *Activation) onlyPath(wanted *apiextensionsv1.CustomResourceConversion) bool {
	withoutPath := func(of *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
		if of = of.DeepCopy(); of != nil && of.Webhook != nil && of.Webhook.ClientConfig != nil && of.Webhook.ClientConfig.Service != nil {
			of.Webhook.ClientConfig.Service.Path = nil
		}
		return of
	}
	return a.converter.Active && equality.Semantic.DeepEqual(withoutPath(a.CRD.Spec.Conversion), withoutPath(wanted))
}

// recall records passed checks in the status. It does so after the change, too, because the
// status may not have been written before.
func (a *Activation) recall(wanted *apiextensionsv1.CustomResourceConversion) {
	subject := a.Subject(wanted)
	sampled, reached := a.Samples.ProvenOf(subject), a.APIServer.ProvenOf(subject)
	if !sampled && !reached {
		return
	}
	known := a.knownOf(wanted)
	if sampled {
		known.Samples = new(int32(a.Samples.Objects))
	}
	known.APIServerProbe = known.APIServerProbe || reached
}

// toSwitch reports that spec.conversion must change, and no repair changes it already. A change
// of caBundle alone is part of a rotation, and needs no new proof.
func (a *Activation) toSwitch(wanted *apiextensionsv1.CustomResourceConversion) bool {
	if a.repair != "" || !a.CRD.DeletionTimestamp.IsZero() {
		return false
	}
	return !equality.Semantic.DeepEqual(withoutBundle(a.CRD.Spec.Conversion), withoutBundle(wanted))
}

func withoutBundle(of *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	if of = of.DeepCopy(); of != nil && of.Webhook != nil && of.Webhook.ClientConfig != nil {
		of.Webhook.ClientConfig.CABundle = nil
	}
	return of
}

// Subject identifies a verified conversion: a hash of the CustomResourceDefinition, the converter
// and the client configuration; and after a hyphen a hash of caBundle.
func (a *Activation) Subject(wanted *apiextensionsv1.CustomResourceConversion) string {
	text, err := json.Marshal(withoutBundle(wanted))
	if err != nil {
		return "" // cannot happen: it consists of strings and numbers
	}
	return names.Hash(string(a.CRD.UID), a.converter.Wanted, string(text))[:16] + "-" + names.Hash(string(wanted.Webhook.ClientConfig.CABundle))[:8]
}

// OfSameRules compares subjects without caBundle.
func OfSameRules(a, b string) bool {
	a, _, _ = strings.Cut(a, "-")
	b, _, _ = strings.Cut(b, "-")
	return a == b
}

func (a *Activation) sample(known *v1alpha1.VerificationStatus, wanted *apiextensionsv1.CustomResourceConversion) gate.Outcome {
	most := SamplesOf(a.Policy)
	if most == 0 || !a.converter.Convertible() {
		known.Samples = new(int32)
		return gate.Outcome{}
	}
	check := a.Samples
	switch {
	case rights.ToRead(a.Cluster).Missing() != "":
		a.work.Recheck(rights.Pause)
		return gate.Waiting(v1alpha1.ReasonRightsNotGranted, rights.ToRead(a.Cluster).Missing()+a.converter.Meanwhile())
	case a.work.DueCheck(check, known.Subject, a.Now):
		a.work.Add(TakeSamples(a.Cluster, a.SamplesStep(most, known.Subject, wanted)))
	case check.Running:
	case check.Lost:
		return gate.Stalled(check.Reason, check.Message+a.converter.Meanwhile())
	default:
		return gate.Waiting(check.Reason, check.Message+a.converter.Meanwhile())
	}
	return gate.Waiting(v1alpha1.ReasonProbing, fmt.Sprintf("converting up to %d live objects through the converter pods and back", most)+a.converter.Meanwhile())
}

// TakeSamples grants the right to read objects, and takes samples.
func TakeSamples(cluster observed.Cluster, samples step.TakeSamples) gate.Work {
	var work gate.Work
	work.Do(rights.ToRead(cluster).Steps()...)
	work.Do(samples)
	return work
}

// SamplesStep is the step that samples live objects, at most the given number.
func (a *Activation) SamplesStep(most int, subject string, wanted *apiextensionsv1.CustomResourceConversion) step.TakeSamples {
	var addresses []string
	for _, pod := range a.converter.ReadyEndpoints() {
		addresses = append(addresses, pod.Address())
	}
	return step.TakeSamples{
		Subject: subject, CRD: a.CRD, Rules: a.Rules, Conversion: wanted, Addresses: addresses,
		Reader: names.Reader(a.Policy.Name, a.Settings.Namespace), Most: most, Timeout: timeoutOf(a.Policy),
	}
}

func (a *Activation) probeAPIServer(known *v1alpha1.VerificationStatus, wanted *apiextensionsv1.CustomResourceConversion) gate.Outcome {
	check := a.APIServer
	switch {
	case a.work.DueCheck(check, known.Subject, a.Now):
		ask := step.ProbeAPIServer{Subject: known.Subject, Conversion: wanted, Timeout: timeoutOf(a.Policy)}
		if a.Policy.Spec.Converter.Declarative != nil {
			ask.RulesetHash = a.converter.Ruleset()
		}
		if fleet := a.converter.Fleet(); fleet != "" {
			ask.Service = names.Hash(fleet, string(wanted.Webhook.ClientConfig.CABundle))
		}
		a.work.Do(ask)
	case check.Running:
	default:
		return gate.Waiting(check.Reason, "the API server does not reach the converter: "+check.Message+a.converter.Meanwhile())
	}
	return gate.Waiting(v1alpha1.ReasonProbing, "waiting for the API server to call the converter"+a.converter.Meanwhile())
}

// proofs says what was verified before the change of spec.conversion.
func (a *Activation) proofs(wanted *apiextensionsv1.CustomResourceConversion) string {
	known := a.Status.Verification
	if known == nil || !OfSameRules(known.Subject, a.Subject(wanted)) || known.Samples == nil {
		return ""
	}
	says := ""
	switch {
	case SamplesOf(a.Policy) == 0 || !a.converter.Convertible():
	case *known.Samples == 0:
		says = "; there are no objects yet for a round trip"
	default:
		says = fmt.Sprintf("; %d live objects came back unchanged", *known.Samples)
	}
	if known.APIServerProbe {
		says += "; verified from one of the API servers"
	}
	return says
}

func (a *Activation) wantsAPIServerProbe() bool {
	return a.Policy.Spec.Verification.APIServers != v1alpha1.VerifyNoAPIServer
}

// SamplesOf is the number of live objects that a policy wants to be sampled.
func SamplesOf(policy *v1alpha1.ConversionPolicy) int {
	if policy.Spec.Verification.Samples == nil {
		return defaultSamples
	}
	return int(*policy.Spec.Verification.Samples)
}

func timeoutOf(policy *v1alpha1.ConversionPolicy) time.Duration {
	if policy.Spec.Verification.Timeout == nil {
		return defaultTimeout
	}
	return policy.Spec.Verification.Timeout.Duration
}
