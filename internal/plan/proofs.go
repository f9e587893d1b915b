// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// Before the CustomResourceDefinition is written, two proofs are asked for that
// take their time, and are had in the background: live objects go through the
// converter pods, there and back; and an API server shows that it reaches them.
// What they have proven is kept in status.verification, so that neither is asked
// for again where the same is to be written once more, or by another manager.

// Samples are taken, and an API server is asked, again: where something has to
// change first, after lookAgain; where something may only be slow, soon, and then
// after twice the time each time, but lookAgain at most.
const (
	askAgain  = 5 * time.Second
	lookAgain = 5 * time.Minute
)

const (
	defaultSamples = 100
	// defaultTimeout is more than the 30 s after which an API server gives a call up.
	defaultTimeout = 45 * time.Second
)

// Inquiry is a proof that is had in the background.
type Inquiry struct {
	// Subject is what it was asked about.
	Subject string
	// Asking tells that there is no answer yet.
	Asking bool
	// Reason is empty when it is proven, and otherwise a condition reason.
	Reason string
	// Message names the cause.
	Message string
	// Lost tells that an object did not come back as it was: to ask again is of no
	// use until the rules or the object change.
	Lost bool
	// Objects that came back as they were, or that were counted, and the names of
	// the first ten of the latter.
	Objects int
	Names   []string
	// Held is what objects hold in annotations, where that was counted, and Discarded
	// the number of objects from which some of it was removed.
	Held      *Held
	Discarded int64
	// Oversized are objects that have no whole form at a version, and Whole those of
	// TakeSamples.Oversized that have one now, or are gone.
	Oversized, Whole []v1alpha1.OversizedObject
	// Requests are what an API server has counted, where that was asked.
	Requests *Requests
	// Attempts is how often it was asked about the same, and Ended when the last
	// answer came.
	Attempts int
	Ended    time.Time
}

// TakeSamples converts live objects there and back through converter pods.
type TakeSamples struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Rules   compile.Result
	// Conversion is what the CustomResourceDefinition is to be given.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Addresses are those of the ready converter pods, with their ports.
	Addresses []string
	// Reader is the user that may list and get the objects.
	Reader string
	// Most is the number of objects at most.
	Most    int
	Timeout time.Duration
	// Again tells that the CustomResourceDefinition has that conversion: an object
	// that cannot be read because of it is lost, too.
	Again bool
	// Oversized are objects that were read in a shortened form, and are to be read again.
	Oversized []v1alpha1.OversizedObject
}

// AskAPIServer lets an API server call the converter.
type AskAPIServer struct {
	Subject string
	// PlanHash is the plan that the converter is to mark its answer with; empty for
	// a converter that knows of no such mark.
	PlanHash   string
	Conversion *apiextensionsv1.CustomResourceConversion
	Timeout    time.Duration
}

func (TakeSamples) step()  {}
func (AskAPIServer) step() {}

// prove asks for the proofs that the switch of the CustomResourceDefinition
// waits for, one after the other.
func (s *state) prove(wanted *apiextensionsv1.CustomResourceConversion) outcome {
	known := s.plan.Status.Verification
	if subject := s.subject(wanted); known == nil || known.Subject != subject {
		known = &v1alpha1.VerificationStatus{Subject: subject}
		s.plan.Status.Verification = known
	}
	if known.Samples == nil {
		if sampled := s.sample(known, wanted); sampled.stop {
			return sampled
		}
	}
	if !known.APIServerProbe && s.wantsAPIServerProbe() {
		return s.probeAPIServer(known, wanted)
	}
	return outcome{}
}

// recall takes what was found out into the status, also after the switch that it
// led to: the status may not have been written then.
func (s *state) recall(wanted *apiextensionsv1.CustomResourceConversion) {
	subject, known := s.subject(wanted), s.plan.Status.Verification
	sampled, reached := s.Samples.provenOf(subject), s.APIServer.provenOf(subject)
	if !sampled && !reached {
		return
	}
	if known == nil || known.Subject != subject {
		known = &v1alpha1.VerificationStatus{Subject: subject}
		s.plan.Status.Verification = known
	}
	if sampled {
		known.Samples = new(int32(s.Samples.Objects))
	}
	known.APIServerProbe = known.APIServerProbe || reached
}

// provenOf reports whether the subject was proven.
func (i *Inquiry) provenOf(subject string) bool {
	return i != nil && i.Subject == subject && !i.Asking && i.Reason == ""
}

func (i *Inquiry) asking() bool { return i != nil && i.Asking }

// toSwitch reports whether the CustomResourceDefinition is to be written, and
// nothing that waits for no gate writes it already. Another caBundle alone is the
// business of who rotates certificates.
func (s *state) toSwitch(wanted *apiextensionsv1.CustomResourceConversion) bool {
	if s.switched || !s.CRD.DeletionTimestamp.IsZero() {
		return false
	}
	return !equality.Semantic.DeepEqual(withoutBundle(s.CRD.Spec.Conversion), withoutBundle(wanted))
}

func withoutBundle(of *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	if of = of.DeepCopy(); of != nil && of.Webhook != nil && of.Webhook.ClientConfig != nil {
		of.Webhook.ClientConfig.CABundle = nil
	}
	return of
}

// subject identifies what is proven: by which rules and where, as the client
// configuration has the hash of the rules in its path; and behind a hyphen what is
// trusted there.
func (s *state) subject(wanted *apiextensionsv1.CustomResourceConversion) string {
	text, err := json.Marshal(withoutBundle(wanted))
	if err != nil {
		return "" // cannot be: it is made of texts and numbers
	}
	return hash(string(s.CRD.UID), s.planHash, string(text))[:16] + "-" + hash(string(wanted.Webhook.ClientConfig.CABundle))[:8]
}

// ofSameRules compares subjects whatever is trusted.
func ofSameRules(a, b string) bool {
	a, _, _ = strings.Cut(a, "-")
	b, _, _ = strings.Cut(b, "-")
	return a == b
}

func (s *state) sample(known *v1alpha1.VerificationStatus, wanted *apiextensionsv1.CustomResourceConversion) outcome {
	most := samplesOf(s.Policy)
	if most == 0 || !s.convertible() {
		known.Samples = new(int32)
		return outcome{}
	}
	asked := s.Samples
	switch {
	case s.mayNotRead() != "":
		return waiting(v1alpha1.ReasonRightsNotGranted, s.mayNotRead()+s.meanwhile())
	case asked == nil || asked.Subject != known.Subject || !asked.Asking && asked.Reason != "" && s.due(asked):
		s.takeSamples(most, known.Subject, wanted)
	case asked.Asking:
	case asked.Lost:
		return stalled(asked.Reason, asked.Message+s.meanwhile())
	default:
		return waiting(asked.Reason, asked.Message+s.meanwhile())
	}
	return waiting(v1alpha1.ReasonSampling, fmt.Sprintf("converting up to %d live objects there and back through the converter pods", most)+s.meanwhile())
}

func (s *state) takeSamples(most int, subject string, wanted *apiextensionsv1.CustomResourceConversion) {
	s.askForSamples(s.samplesStep(most, subject, wanted))
}

// askForSamples lets objects be read, and reads them.
func (s *state) askForSamples(step TakeSamples) {
	s.sampling = true
	for _, right := range s.readRights() {
		s.do(Apply{right})
	}
	s.do(step)
}

func (s *state) samplesStep(most int, subject string, wanted *apiextensionsv1.CustomResourceConversion) TakeSamples {
	var addresses []string
	for _, pod := range s.answering() {
		addresses = append(addresses, net.JoinHostPort(pod.IP, strconv.Itoa(int(pod.Port))))
	}
	return TakeSamples{
		Subject: subject, CRD: s.CRD, Rules: s.Rules, Conversion: wanted, Addresses: addresses,
		Reader: ReaderName(s.Policy.Name, s.Settings.Namespace), Most: most, Timeout: timeoutOf(s.Policy),
	}
}

func (s *state) probeAPIServer(known *v1alpha1.VerificationStatus, wanted *apiextensionsv1.CustomResourceConversion) outcome {
	asked := s.APIServer
	switch {
	case asked == nil || asked.Subject != known.Subject || !asked.Asking && asked.Reason != "" && s.due(asked):
		ask := AskAPIServer{Subject: known.Subject, Conversion: wanted, Timeout: timeoutOf(s.Policy)}
		if s.Policy.Spec.Converter.Declarative != nil {
			ask.PlanHash = s.planHash
		}
		s.do(ask)
	case asked.Asking:
	default:
		return waiting(asked.Reason, "the API server does not reach the converter: "+asked.Message+s.meanwhile())
	}
	return waiting(v1alpha1.ReasonProbing, "the API server is asked to call the converter"+s.meanwhile())
}

// convertible reports whether there are two versions to convert between.
func (s *state) convertible() bool {
	if s.Rules.Plan != nil {
		return len(s.Rules.Plan.Pairs()) > 0
	}
	return len(s.CRD.Spec.Versions) > 1
}

// due reports whether it is time to ask once more, and else when to look again.
func (s *state) due(asked *Inquiry) bool {
	wait := lookAgain
	if !asked.Lost {
		wait = min(askAgain<<min(asked.Attempts-1, 10), lookAgain)
	}
	left := asked.Ended.Add(wait).Sub(s.Now)
	if left > 0 {
		s.recheck(left)
	}
	return left <= 0
}

// tidy takes away the right to read objects when nothing reads them any more, and
// what is left of sources of certificates.
func (s *state) tidy() {
	asking := s.Samples.asking() || s.Written.asking() || s.Resampled.asking()
	if s.ReadRights && !s.sampling && !asking {
		s.withdraw(ReadRightsName(s.Policy.Name))
	}
	if s.ClearRights && !s.clearing {
		s.withdraw(ClearRightsName(s.Policy.Name)) // which also stops what goes on
	}
	s.tidyCertificates()
	s.tidyAdmission()
}

// proofs says what was proven before the switch, in words.
func (s *state) proofs(wanted *apiextensionsv1.CustomResourceConversion) string {
	known := s.plan.Status.Verification
	if known == nil || !ofSameRules(known.Subject, s.subject(wanted)) || known.Samples == nil {
		return ""
	}
	says := ""
	switch {
	case samplesOf(s.Policy) == 0 || !s.convertible():
	case *known.Samples == 0:
		says = "; no objects yet to convert there and back"
	default:
		says = fmt.Sprintf("; %d live objects came back as they were", *known.Samples)
	}
	if known.APIServerProbe {
		says += "; an API server reached them: one of them, where there are several"
	}
	return says
}

func (s *state) wantsAPIServerProbe() bool {
	wanted := s.Policy.Spec.Verification.APIServerProbe
	return wanted == nil || *wanted
}

func samplesOf(policy *v1alpha1.ConversionPolicy) int {
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
