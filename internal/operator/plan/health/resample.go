// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
)

// Samples from before the activation prove nothing about objects that are written later. So the
// operator takes samples again from time to time. It reports failures in a condition, and reverts
// nothing, because more would be lost without the conversion. The status has the time of the next
// samples, so that a restart of the manager does not start all of them at once.

const (
	// DefaultResampleInterval is the time between two samplings.
	DefaultResampleInterval = 6 * time.Hour
	// resampleSoon is that time during a problem.
	resampleSoon = 15 * time.Minute
	// resampleBusy is the wait while other policies take samples.
	resampleBusy = time.Minute
	// jitter is the divisor of the interval by which it varies.
	jitter = 10
)

// resample takes samples again when that is due, and reports what the last ones found.
func (h *Health) resample(verified bool) {
	h.Status.Verification = h.activation.Status.Verification.DeepCopy()

	interval := resampleIntervalOf(h.Policy)
	if h.CRD == nil || !h.converter.Active || h.None() || interval == 0 || activation.SamplesOf(h.Policy) == 0 || !h.converter.Convertible() {
		h.forgetResamples()
		return
	}
	if h.Policy.Spec.Paused || h.IsDeleted() || !verified || !h.converter.InCharge() || h.converter.Drifted || !h.CRD.DeletionTimestamp.IsZero() || h.ForeignMigration != "" {
		return
	}
	wanted := h.converter.Conversion(h.converter.Wanted)
	known := h.Status.Verification
	if known == nil || !activation.OfSameRules(known.Subject, h.activation.Subject(wanted)) {
		known = &v1alpha1.VerificationStatus{Subject: h.activation.Subject(wanted)}
		h.Status.Verification = known
	}
	if known.NextSampleTime == nil {
		h.forget(v1alpha1.SamplesFailingCondition) // it was about other rules
		known.NextSampleTime = h.after(time.Duration(h.fraction("") * float64(interval)))
	}
	if len(h.Status.OversizedObjects) > 0 {
		interval = min(interval, resampleSoon)
	}
	h.heedResamples(known, interval)
	if latest := h.Now.Add(interval + interval/jitter); known.NextSampleTime.After(latest) {
		known.NextSampleTime = h.nextSample(known, interval) // the interval has become shorter
	}
	if !h.work.Due(known.NextSampleTime.Sub(h.Now)) {
		return
	}
	h.takeSamplesAgain(known, wanted)
}

// forgetResamples ends the report if no samples are taken.
func (h *Health) forgetResamples() {
	h.forget(v1alpha1.SamplesFailingCondition)
	if known := h.Status.Verification; known != nil {
		known.NextSampleTime = nil
	}
}

func (h *Health) takeSamplesAgain(known *v1alpha1.VerificationStatus, wanted *apiextensionsv1.CustomResourceConversion) {
	subject := resampleSubject(known)
	check := h.Resampled
	switch {
	case check != nil && check.Running:
	case rights.ToRead(h.Cluster).Missing() != "":
		h.work.Recheck(rights.Pause)
	case h.ResamplersBusy:
		h.work.Recheck(resampleBusy)
	default:
		samples := h.activation.SamplesStep(activation.SamplesOf(h.Policy), subject, wanted)
		samples.Again, samples.Oversized = true, h.Rows()
		h.work.Add(activation.TakeSamples(h.Cluster, samples))
	}
}

// resampleSubject identifies one sampling.
func resampleSubject(known *v1alpha1.VerificationStatus) string {
	return known.Subject + " " + known.NextSampleTime.UTC().Format(time.RFC3339)
}

// heedResamples records the result of a sampling in the status.
func (h *Health) heedResamples(known *v1alpha1.VerificationStatus, interval time.Duration) {
	found := h.Resampled
	if found == nil || found.Running || found.Subject != resampleSubject(known) {
		return
	}
	switch {
	case found.Lost:
		h.report(v1alpha1.SamplesFailingCondition, gate.Abnormal(found.Reason, found.Message))
		interval = min(interval, resampleSoon)
	case found.Reason != "": // no object is the cause: the previous result stays
		interval = min(interval, resampleSoon)
	default:
		h.forget(v1alpha1.SamplesFailingCondition)
	}
	known.NextSampleTime = h.nextSample(known, interval)
}

// nextSample is the time of the next sampling, with jitter.
func (h *Health) nextSample(known *v1alpha1.VerificationStatus, interval time.Duration) *metav1.Time {
	share := 2*h.fraction(known.NextSampleTime.UTC().Format(time.RFC3339)) - 1
	return h.after(interval + time.Duration(share*float64(interval/jitter)))
}

func (h *Health) after(wait time.Duration) *metav1.Time {
	return new(metav1.NewTime(h.Now.Add(wait)).Rfc3339Copy())
}

// fraction is a pseudo-random number from 0 to 1 for a policy and a text.
func (h *Health) fraction(text string) float64 {
	const bytes = 4
	sum, err := hex.DecodeString(names.Hash(string(h.Policy.UID), h.Policy.Name, text)[:2*bytes])
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
