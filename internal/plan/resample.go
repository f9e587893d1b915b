// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Samples that came back as they were before the activation prove nothing of objects
// that are written later. So they are taken again from time to time. What is found is
// reported, in a condition that exists only then, and undoes nothing: without the
// conversion, more would be lost. When samples are taken next is in the status, so
// that managers that restart, and policies that were made together, do not all begin
// at once.

const (
	// DefaultResampleInterval is between two times that samples are taken.
	DefaultResampleInterval = 6 * time.Hour
	// resampleSoon is between them while something is wrong, or objects were not read.
	resampleSoon = 15 * time.Minute
	// resampleBusy is when to look again where other policies take samples now.
	resampleBusy = time.Minute
	// jitter is the part of an interval by which it may be shorter, or longer.
	jitter = 10
)

// resample takes samples again where it is time, and reports what was found.
func (s *state) resample() {
	interval := resampleIntervalOf(s.Policy)
	if s.CRD == nil || !s.armed || s.none() || interval == 0 || samplesOf(s.Policy) == 0 || !s.convertible() {
		s.forgetResamples()
		return
	}
	if s.Policy.Spec.Suspend || !s.Policy.DeletionTimestamp.IsZero() || !s.rested() {
		return
	}
	wanted := s.conversion(s.planHash)
	known := s.plan.Status.Verification
	if known == nil || !ofSameRules(known.Subject, s.subject(wanted)) {
		known = &v1alpha1.VerificationStatus{Subject: s.subject(wanted)}
		s.plan.Status.Verification = known
	}
	if known.NextSampleTime == nil {
		apimeta.RemoveStatusCondition(&s.plan.Status.Conditions, v1alpha1.SamplesFailingCondition) // of other rules
		known.NextSampleTime = s.after(time.Duration(s.fraction("") * float64(interval)))
	}
	if s.plan.Status.OversizedObjects != nil {
		interval = min(interval, resampleSoon)
	}
	s.heedResamples(known, interval)
	if latest := s.Now.Add(interval + interval/jitter); known.NextSampleTime.After(latest) {
		known.NextSampleTime = s.nextSample(known, interval) // the interval has become shorter
	}
	if left := known.NextSampleTime.Sub(s.Now); left > 0 {
		s.recheck(left)
		return
	}
	s.takeSamplesAgain(known, wanted)
}

// rested tells that what API servers call is what the policy wants, is proven, and
// that nobody migrates.
func (s *state) rested() bool {
	proven := apimeta.IsStatusConditionTrue(s.plan.Status.Conditions, v1alpha1.ConversionVerifiedCondition) &&
		apimeta.IsStatusConditionTrue(s.plan.Status.Conditions, v1alpha1.ConversionConfiguredCondition)
	return proven && s.inCharge() && !s.switched && !s.drifted && s.CRD.DeletionTimestamp.IsZero() && s.underWay() == nil && s.ForeignMigration == ""
}

// forgetResamples says nothing any more of samples that are not taken.
func (s *state) forgetResamples() {
	apimeta.RemoveStatusCondition(&s.plan.Status.Conditions, v1alpha1.SamplesFailingCondition)
	if known := s.plan.Status.Verification; known != nil {
		known.NextSampleTime = nil
	}
}

func (s *state) takeSamplesAgain(known *v1alpha1.VerificationStatus, wanted *apiextensionsv1.CustomResourceConversion) {
	subject := resampleSubject(known)
	asked := s.Resampled
	switch {
	case asked != nil && asked.Asking:
	case s.mayNotRead() != "": // they are taken once that is granted
	case s.ResamplersBusy:
		s.recheck(resampleBusy)
	default:
		step := s.samplesStep(samplesOf(s.Policy), subject, wanted)
		step.Again, step.Oversized = true, s.oversized()
		s.askForSamples(step)
	}
}

// resampleSubject is a time at which samples are taken.
func resampleSubject(known *v1alpha1.VerificationStatus) string {
	return known.Subject + " " + known.NextSampleTime.UTC().Format(time.RFC3339)
}

// heedResamples takes what was found into the status.
func (s *state) heedResamples(known *v1alpha1.VerificationStatus, interval time.Duration) {
	found := s.Resampled
	if found == nil || found.Asking || found.Subject != resampleSubject(known) {
		return
	}
	ended := new(metav1.NewTime(found.Ended).Rfc3339Copy())
	switch {
	case found.Lost:
		s.report(v1alpha1.SamplesFailingCondition, outcome{status: metav1.ConditionTrue, reason: found.Reason, message: found.Message})
		known.ResampledTime, known.Resampled = ended, new(int32(found.Objects)) //nolint:gosec // spec.verification.samples bounds it
		interval = min(interval, resampleSoon)
	case found.Reason != "": // no object is the cause: what was found before stays
		interval = min(interval, resampleSoon)
	default:
		apimeta.RemoveStatusCondition(&s.plan.Status.Conditions, v1alpha1.SamplesFailingCondition)
		known.ResampledTime, known.Resampled = ended, new(int32(found.Objects)) //nolint:gosec // spec.verification.samples bounds it
	}
	known.NextSampleTime = s.nextSample(known, interval)
}

// nextSample is after an interval, give or take a part of it.
func (s *state) nextSample(known *v1alpha1.VerificationStatus, interval time.Duration) *metav1.Time {
	share := 2*s.fraction(known.NextSampleTime.UTC().Format(time.RFC3339)) - 1
	return s.after(interval + time.Duration(share*float64(interval/jitter)))
}

func (s *state) after(wait time.Duration) *metav1.Time {
	return new(metav1.NewTime(s.Now.Add(wait)).Rfc3339Copy())
}

// fraction is a number from 0 to 1 that each policy has of its own for a text.
func (s *state) fraction(text string) float64 {
	const bytes = 4
	sum, err := hex.DecodeString(hash(string(s.Policy.UID), s.Policy.Name, text)[:2*bytes])
	if err != nil {
		panic(fmt.Sprintf("a hash is not hexadecimal: %v", err)) // it is, by the line above
	}
	return float64(binary.BigEndian.Uint32(sum)) / (1 << (8 * bytes))
}

func resampleIntervalOf(policy *v1alpha1.ConversionPolicy) time.Duration {
	if policy.Spec.Verification.ResampleInterval == nil {
		return DefaultResampleInterval
	}
	return policy.Spec.Verification.ResampleInterval.Duration
}
