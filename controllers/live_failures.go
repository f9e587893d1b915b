// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"crypto/tls"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// heard is what a pod told of failed conversions, when it last proved itself.
type heard struct {
	policy    string
	failures  []v1alpha1.ConversionFailure
	oversized []v1alpha1.OversizedObject
}

const (
	// maxHeard bounds what is taken from one pod.
	maxHeard = 64
	// maxVersion, maxObject and maxMessage are what a status has room for, in bytes.
	maxVersion, maxObject, maxMessage = 63, 512, 600
)

// causeWord is what a cause looks like. Pods of a later version may know others.
var causeWord = regexp.MustCompile(`^[A-Z][A-Za-z]{0,62}$`)

// hear remembers what a pod tells. Nothing new is heard where nothing more has failed:
// the clocks of pods differ by a little each time.
func (p *Prober) hear(policy string, pod types.UID, told *webhook.Failures, now time.Time) {
	const most = 10_000
	if told == nil {
		return
	}
	failures, oversized := failuresTold(told, now), oversizedTold(told, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if sameFailures(p.heard[pod].failures, failures) && sameOversized(p.heard[pod].oversized, oversized, oversizedPrecision) {
		return
	}
	if p.heard == nil || len(p.heard) >= most {
		p.heard = map[types.UID]heard{}
	}
	p.heard[pod] = heard{policy, failures, oversized}
}

func (p *Prober) heardOf(pod types.UID) heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[pod]
}

// tell fills in what pods have told.
func (p *Prober) tell(state *observed.Cluster) {
	for i := range state.Pods {
		told := p.heardOf(state.Pods[i].UID)
		state.Pods[i].Failures, state.Pods[i].Oversized = told.failures, told.oversized
	}
}

// sameFailures reports that nothing more has failed.
func sameFailures(a, b []v1alpha1.ConversionFailure) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.ConversionFailure) bool {
		return a.From == b.From && a.To == b.To && a.Cause == b.Cause && a.Count == b.Count
	})
}

// failuresTold adds up what a pod tells of all its rulesets. Its clock may be another.
func failuresTold(told *webhook.Failures, now time.Time) []v1alpha1.ConversionFailure {
	var sum []v1alpha1.ConversionFailure
	for _, failure := range told.Failures {
		if len(sum) == maxHeard || len(failure.From) > maxVersion || len(failure.To) > maxVersion || failure.Count <= 0 {
			continue
		}
		ago := max(told.Now.Sub(failure.Last), 0)
		row := v1alpha1.ConversionFailure{From: failure.From, To: failure.To, Cause: string(failure.Cause), Count: failure.Count,
			LastTime: metav1.NewTime(now.Add(-ago)), Object: failure.Object, Message: failure.Message}
		if !causeWord.MatchString(row.Cause) {
			row.Cause = string(conversion.CauseOther)
		}
		if len(row.Object) > maxObject {
			row.Object = ""
		}
		if len(row.Message) > maxMessage {
			row.Message = truncate(row.Message[:maxMessage])
		}
		sum = addFailure(sum, row)
	}
	return sum
}

func addFailure(sum []v1alpha1.ConversionFailure, row v1alpha1.ConversionFailure) []v1alpha1.ConversionFailure {
	for i, known := range sum {
		if known.From != row.From || known.To != row.To || known.Cause != row.Cause {
			continue
		}
		if known.LastTime.After(row.LastTime.Time) {
			known, row = row, known
		}
		row.Count += known.Count
		sum[i] = row
		return sum
	}
	return append(sum, row)
}

// failuresToken is what makes a policy's pods tell; empty where its key cannot be read,
// and then they do not.
func failuresToken(certificate *corev1.Secret) string {
	pair, err := tls.X509KeyPair(certificate.Data[corev1.TLSCertKey], certificate.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return ""
	}
	token, err := webhook.FailuresToken(pair.PrivateKey)
	if err != nil {
		return ""
	}
	return token
}
