// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/answers"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// callReasons are the reasons of calls that fail for each case of package answers.
var callReasons = map[string]Reason{
	"converter-is-down":                    ReasonUnreachable,
	"converter-closes":                     ReasonUnreachable,
	"converter-hangs":                      ReasonUnreachable,
	"converter-of-another-authority":       ReasonTLSVerificationFailed,
	"converter-with-another-name":          ReasonTLSVerificationFailed,
	"converter-with-expired-certificate":   ReasonTLSVerificationFailed,
	"converter-service-not-found":          ReasonUnreachable,
	"converter-service-without-pods":       ReasonUnreachable,
	"converter-service-without-port":       ReasonUnreachable,
	"converter-service-without-ready-pods": ReasonUnreachable,
	"converter-service-headless":           ReasonUnreachable,
}

// refusals are the cases in which a converter was reached, and answered with a ConversionReview. For
// HTTP status 403, API servers return only the body, so the answer reads like a refusal.
var refusals = map[string]bool{
	"converter-refuses": true, "converter-refuses-without-reason": true, "converter-returns-no-object": true,
	"converter-returns-another-version": true, "converter-renames": true, "converter-sets-a-bad-label": true, "converter-answers-403": true,
}

// TestAnswersOfAPIServers reads the answers of every supported version of Kubernetes to a probe.
func TestAnswersOfAPIServers(t *testing.T) {
	minors := map[string]map[string]bool{}
	for _, answer := range answers.All(t) {
		if answer.Request != answers.Create || !strings.HasPrefix(answer.Case, "converter-") {
			continue
		}
		if minors[answer.Minor] == nil {
			minors[answer.Minor] = map[string]bool{}
		}
		minors[answer.Minor][answer.Case] = true
		want, known := callReasons[answer.Case]
		if !known {
			want = ReasonUnexpectedAnswer
		}
		err := answer.Error()
		expect.Equal(t, fmt.Sprintf("%s: recognized as the call of a webhook: %v", answer, err), true, CalledWebhook(err))
		failure := CallFailed(err)
		if found, ok := errors.AsType[*Error](failure); !ok || found.Reason != want {
			t.Errorf("%s: reason %s, want %s: %v", answer, found.Reason, want, err)
		}
		expect.Equal(t, "taken for a refusal: "+err.Error(), refusals[answer.Case], Refused(failure))
	}
	for minor, cases := range minors {
		for name := range callReasons {
			expect.Equal(t, fmt.Sprintf("%s: there is an answer for %s", minor, name), true, cases[name])
		}
	}
}
