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
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// podReport is what a converter pod reported about conversions, at its latest successful probe.
type podReport struct {
	failures  []observed.Failure
	oversized []v1alpha1.OversizedObject
}

const (
	// maxReported bounds the rows that are taken from one pod.
	maxReported = 64
	// maxVersion, maxObject and maxMessage are the limits of the status, in bytes.
	maxVersion, maxObject, maxMessage = 63, 512, 600
)

// causeWord matches a cause. Pods of a later version may report causes that this version does not
// know.
var causeWord = regexp.MustCompile(`^[A-Z][A-Za-z]{0,62}$`)

// recordReport remembers the report of a pod. It keeps the previous report if nothing more failed:
// times differ a little at each probe, because clocks differ.
func (p *Prober) recordReport(policy string, pod types.UID, reported *webhook.Failures, now time.Time) {
	const most = 10_000
	if reported == nil {
		return
	}
	failures, oversized := reportedFailures(reported, now), reportedOversized(reported, now)
	key := podKey{policy, pod}
	p.mu.Lock()
	defer p.mu.Unlock()
	if sameFailures(p.reports[key].failures, failures) && sameOversized(p.reports[key].oversized, oversized, oversizedPrecision) {
		return
	}
	if p.reports == nil || len(p.reports) >= most {
		p.reports = map[podKey]podReport{}
	}
	p.reports[key] = podReport{failures, oversized}
}

func (p *Prober) reportOf(policy string, pod types.UID) podReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reports[podKey{policy, pod}]
}

// fillReports adds the reports of the pods.
func (p *Prober) fillReports(state *observed.Cluster) {
	for i := range state.Pods {
		report := p.reportOf(state.Policy.Name, state.Pods[i].UID)
		state.Pods[i].Failures, state.Pods[i].Oversized = report.failures, report.oversized
	}
}

// sameFailures reports whether both lists have the same counts. It ignores times.
func sameFailures(a, b []observed.Failure) bool {
	return slices.EqualFunc(a, b, func(a, b observed.Failure) bool {
		return a.From == b.From && a.To == b.To && a.Cause == b.Cause && a.Ruleset == b.Ruleset && a.Count == b.Count
	})
}

// reportedFailures sums the failures that a pod reports for all its rulesets, except that each ruleset
// lacks versions by itself. Times are converted to this manager's clock.
func reportedFailures(reported *webhook.Failures, now time.Time) []observed.Failure {
	var sum []observed.Failure
	for _, failure := range reported.Failures {
		if len(sum) == maxReported || len(failure.From) > maxVersion || len(failure.To) > maxVersion || failure.Count <= 0 {
			continue
		}
		ago := max(reported.Now.Sub(failure.Last), 0)
		row := observed.Failure{ConversionFailure: v1alpha1.ConversionFailure{
			From: failure.From, To: failure.To, Cause: v1alpha1.ConversionFailureCause(failure.Cause),
			LastTime: metav1.NewTime(now.Add(-ago)), Object: failure.Object, Message: failure.Message}, Count: failure.Count}
		if row.Cause == v1alpha1.CauseUnknownVersion {
			row.Ruleset, row.Since = failure.Ruleset, now.Add(failure.First.Sub(reported.Now))
		}
		if !causeWord.MatchString(string(row.Cause)) {
			row.Cause = v1alpha1.CauseOther
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

func addFailure(sum []observed.Failure, row observed.Failure) []observed.Failure {
	for i, known := range sum {
		if known.From != row.From || known.To != row.To || known.Cause != row.Cause || known.Ruleset != row.Ruleset {
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

// failuresToken returns the token with which a policy's pods accept to report failures. It is
// empty if the key cannot be read; then they do not report.
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
