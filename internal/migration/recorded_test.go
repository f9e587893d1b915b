// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"strings"
	"testing"

	recorded "github.com/conversion-operator/conversion-operator/internal/test/answers"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"

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

// conclusions are the cases of package answers by what a migration concludes from them. Only an answer about the
// object may fail the object. API servers return only the body of converter-answers-403.
var conclusions = map[understood]string{
	aRefusal: `converter-refuses converter-refuses-without-reason converter-returns-no-object converter-returns-another-version converter-renames
		converter-sets-a-bad-label converter-answers-another-request converter-answers-without-response converter-answers-403`,
	anOutage: `converter-answers-another-kind converter-answers-html converter-answers-400 converter-answers-401 converter-answers-404 converter-answers-405
		converter-answers-413 converter-answers-429 converter-answers-500 converter-answers-502 converter-answers-503 converter-answers-504
		converter-redirects converter-closes converter-hangs converter-is-down converter-without-tls converter-of-another-authority
		converter-with-another-name converter-with-expired-certificate converter-service-not-found converter-service-without-port
		converter-service-without-pods converter-service-without-ready-pods converter-service-headless admission-answers-404 admission-answers-500
		admission-answers-html admission-hangs admission-is-down admission-service-not-found etcd-full`,
	aDenial: `admission-denies admission-denies-as-invalid admission-denies-as-401 admission-denies-as-404 admission-denies-as-409 admission-denies-without-why
		mutation-denies policy-denies policy-denies-by-default policy-denies-as-forbidden policy-denies-as-too-large policy-fails`,
	overload: `etcd-hangs etcd-unreachable`,

	{v1alpha1.FailureRefused, tryAgain}: `mutation-is-wrong`,
	{v1alpha1.FailureConflict, refetch}: `conflict`,
	{v1alpha1.FailureNotFound, refetch}: `object-not-found`,
	{v1alpha1.FailureInvalid, giveUp}:   `schema-refuses`,
	{v1alpha1.FailureTooLarge, giveUp}:  `too-large-for-etcd too-large-for-the-connection too-large-for-the-server`,
	// The run, or the pod, ends: the reason is not reported.
	{v1alpha1.FailureNotFound, stopRun}:           `definition-deleted version-not-served`,
	{v1alpha1.FailureRefused, restartPod}:         `without-credentials`,
	{v1alpha1.FailureAdmissionDenied, restartPod}: `without-the-right`,
}

// TestAnswersOfAPIServers reads the answers of every supported version of Kubernetes to patches and
// lists: a changed text must not turn an outage into failed objects, nor the reverse.
func TestAnswersOfAPIServers(t *testing.T) {
	patches := map[string]understood{}
	for conclusion, names := range conclusions {
		for name := range strings.FieldsSeq(names) {
			patches[name] = conclusion
		}
	}
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
			expect.Equal(t, fmt.Sprintf("%s: %v", answer, err), v1alpha1.FailureNamespaceTerminating, reasonOf(err))
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
			expect.Equal(t, fmt.Sprintf("%s: unreadable: %v", answer, err), want == aRefusal, unreadable(err))
			expect.Equal(t, fmt.Sprintf("%s: infrastructure: %v", answer, err), want == anOutage, infrastructure(err))
		}
	}
	for minor, cases := range minors {
		for name := range patches {
			expect.Equal(t, minor+": there is an answer for "+name, true, cases[name])
		}
	}
}
