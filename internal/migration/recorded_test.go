// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"strings"
	"testing"

	recorded "github.com/conversion-operator/conversion-operator/internal/test/answers"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// understood is what a migration concludes from the answer to a patch.
type understood struct {
	reason v1alpha1.MigrationFailureReason
	remedy remedy
}

var (
	anOutage = understood{v1alpha1.FailureUnavailable, tryAgain}
	overload = understood{v1alpha1.FailureUnavailable, awaitServer}
	aRefusal = understood{v1alpha1.FailureConversionFailed, tryAgain}
	aDenial  = understood{v1alpha1.FailureAdmissionDenied, giveUp}
)

// patches are the conclusions for each case of package answers. Only an answer about the object may
// fail the object.
var patches = map[string]understood{
	"converter-refuses":                  aRefusal,
	"converter-refuses-without-reason":   aRefusal,
	"converter-returns-no-object":        aRefusal,
	"converter-returns-another-version":  aRefusal,
	"converter-renames":                  aRefusal,
	"converter-sets-a-bad-label":         aRefusal,
	"converter-answers-another-request":  aRefusal,
	"converter-answers-without-response": aRefusal,
	"converter-answers-403":              aRefusal, // API servers return only the body

	"converter-answers-another-kind":       anOutage,
	"converter-answers-html":               anOutage,
	"converter-answers-400":                anOutage,
	"converter-answers-401":                anOutage,
	"converter-answers-404":                anOutage,
	"converter-answers-405":                anOutage,
	"converter-answers-413":                anOutage,
	"converter-answers-429":                anOutage,
	"converter-answers-500":                anOutage,
	"converter-answers-502":                anOutage,
	"converter-answers-503":                anOutage,
	"converter-answers-504":                anOutage,
	"converter-redirects":                  anOutage,
	"converter-closes":                     anOutage,
	"converter-hangs":                      anOutage,
	"converter-is-down":                    anOutage,
	"converter-without-tls":                anOutage,
	"converter-of-another-authority":       anOutage,
	"converter-with-another-name":          anOutage,
	"converter-with-expired-certificate":   anOutage,
	"converter-service-not-found":          anOutage,
	"converter-service-without-port":       anOutage,
	"converter-service-without-pods":       anOutage,
	"converter-service-without-ready-pods": anOutage,
	"converter-service-headless":           anOutage,

	"admission-denies":             aDenial,
	"admission-denies-as-invalid":  aDenial,
	"admission-denies-as-401":      aDenial,
	"admission-denies-as-404":      aDenial,
	"admission-denies-as-409":      aDenial,
	"admission-denies-without-why": aDenial,
	"mutation-denies":              aDenial,
	"policy-denies":                aDenial,
	"policy-denies-by-default":     aDenial,
	"policy-denies-as-forbidden":   aDenial,
	"policy-denies-as-too-large":   aDenial,
	"policy-fails":                 aDenial,
	"admission-answers-404":        anOutage,
	"admission-answers-500":        anOutage,
	"admission-answers-html":       anOutage,
	"admission-hangs":              anOutage,
	"admission-is-down":            anOutage,
	"admission-service-not-found":  anOutage,
	"mutation-is-wrong":            {v1alpha1.FailureRefused, tryAgain},

	"conflict":                     {v1alpha1.FailureConflict, refetch},
	"object-not-found":             {v1alpha1.FailureNotFound, refetch},
	"schema-refuses":               {v1alpha1.FailureInvalid, giveUp},
	"too-large-for-etcd":           {v1alpha1.FailureTooLarge, giveUp},
	"too-large-for-the-connection": {v1alpha1.FailureTooLarge, giveUp},
	"too-large-for-the-server":     {v1alpha1.FailureTooLarge, giveUp},
	"etcd-full":                    anOutage,
	"etcd-hangs":                   overload,
	"etcd-unreachable":             overload,
	// The run, or the pod, ends: the reason is not reported.
	"definition-deleted":  {v1alpha1.FailureNotFound, stopRun},
	"version-not-served":  {v1alpha1.FailureNotFound, stopRun},
	"without-credentials": {v1alpha1.FailureRefused, restartPod},
	"without-the-right":   {v1alpha1.FailureAdmissionDenied, restartPod},
}

// TestAnswersOfAPIServers reads the answers of every supported version of Kubernetes to patches and
// lists: a changed text must not turn an outage into failed objects, nor the reverse.
func TestAnswersOfAPIServers(t *testing.T) {
	minors := map[string]map[string]bool{}
	for _, answer := range recorded.All(t) {
		if minors[answer.Minor] == nil {
			minors[answer.Minor] = map[string]bool{}
		}
		minors[answer.Minor][answer.Case] = true
		err := answer.Error()
		want, known := patches[answer.Case]
		switch {
		case answer.Case == "namespace-terminating":
			if got := reasonOf(err); got != v1alpha1.FailureNamespaceTerminating {
				t.Errorf("%s: %s: %v", answer, got, err)
			}
		case answer.Case == "list-expired":
			if !expired(err) || nextToken(err) == "" {
				t.Errorf("%s: expired %t, next token %q: %v", answer, expired(err), nextToken(err), err)
			}
		case answer.Request == recorded.Patch && !known:
			t.Errorf("%s: this test has no conclusion for %v", answer, err)
		case answer.Request == recorded.Patch:
			got := understood{reasonOf(err), remedyFor(err, recorded.Object)}
			if got != want {
				t.Errorf("%s: %+v, want %+v: %v", answer, got, want, err)
			}
		case answer.Request == recorded.List && strings.HasPrefix(answer.Case, "converter-"):
			if unreadable(err) != (want == aRefusal) || infrastructure(err) != (want == anOutage) {
				t.Errorf("%s: unreadable %t, infrastructure %t: %v", answer, unreadable(err), infrastructure(err), err)
			}
		}
	}
	for minor, cases := range minors {
		for name := range patches {
			if !cases[name] {
				t.Errorf("%s: no answer for %s", minor, name)
			}
		}
	}
}
