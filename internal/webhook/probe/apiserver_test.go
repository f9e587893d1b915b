// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

const head = "conversion webhook for probe.conversion-operator.io/v1, Kind=ConversionProbe failed: "

// TestCallFailed checks the messages for the errors of API servers. They contain no times and no
// local ports.
func TestCallFailed(t *testing.T) {
	const post = `Post "https://crontabs.conversion-system.svc:443/convert/abc": `
	cases := map[string]struct {
		message string
		want    Error
	}{
		"no endpoints": {head + `Post "https://crontabs.conversion-system.svc:443/convert/abc?timeout=30s": no endpoints available for service "crontabs"`, Error{ReasonUnreachable,
			head + post + `no endpoints available for service "crontabs": check the Service, and that the converter pods are ready`}},
		"no Service": {head + post + `service "crontabs" not found`, Error{ReasonUnreachable,
			head + post + `service "crontabs" not found: check the Service, and that the converter pods are ready`}},
		"refused": {head + post + "dial tcp 10.96.0.7:443: connect: connection refused", Error{ReasonUnreachable,
			head + post + "dial tcp 10.96.0.7:443: connect: connection refused: nothing listens where the API server's call ends"}},
		"unknown authority": {head + post + "tls: failed to verify certificate: x509: certificate signed by unknown authority", Error{ReasonTLSVerificationFailed,
			head + post + "tls: failed to verify certificate: x509: certificate signed by unknown authority: the API server does not accept the certificate that answered: something between the two may end TLS"}},
		"expired": {head + post + "x509: certificate has expired or is not yet valid: current time 2026-11-21T18:39:03Z is after 2026-11-20T00:00:00Z", Error{ReasonTLSVerificationFailed,
			head + post + "x509: certificate has expired or is not yet valid: now is after 2026-11-20T00:00:00Z: the API server does not accept the certificate that answered: something between the two may end TLS"}},
		"black hole": {head + post + "context deadline exceeded", Error{ReasonUnreachable, head + post + "context deadline exceeded: " + hintFirewall}},
		"slow":       {head + post + "dial tcp 10.96.0.7:443: i/o timeout", Error{ReasonUnreachable, head + post + "dial tcp 10.96.0.7:443: i/o timeout: " + hintFirewall}},
		"no route":   {head + post + "dial tcp 10.96.0.7:443: connect: no route to host", Error{ReasonUnreachable, head + post + "dial tcp 10.96.0.7:443: connect: no route to host: " + hintRoute}},
		"reset":      {head + post + "read tcp 10.0.0.1:43210->10.96.0.7:443: read: connection reset by peer", Error{ReasonUnreachable, head + post + "read tcp 10.96.0.7:443: read: connection reset by peer: " + hintRoute}},
		"404": {head + "the server could not find the requested resource", Error{ReasonUnexpectedAnswer,
			head + "the server could not find the requested resource: something else than the converter answered with HTTP status 404: check what the Service leads to"}},
		"refused by the converter": {head + "I will not", Error{ReasonUnexpectedAnswer, head + "I will not"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := apierrors.NewInternalError(errors.New(c.message))
			expect.Equal(t, "taken for the call of a webhook", true, CalledWebhook(err))
			expect.Equal[error](t, "error", &c.want, CallFailed(err))
			expect.Equal(t, "refused by the converter", name == "refused by the converter", Refused(CallFailed(err)))
		})
	}
}

func TestCalledWebhook(t *testing.T) {
	err := apierrors.NewInternalError(errors.New("no leader"))
	expect.Equal(t, "an error of the API server's own is taken for that of a webhook", false, CalledWebhook(err))
}

func TestCheckAnswer(t *testing.T) {
	answered := func(change func(spec map[string]any)) *unstructured.Unstructured {
		answer := ProbeRequest()
		spec := answer.Object["spec"].(map[string]any)
		spec[webhook.ProbeMark] = "abc"
		change(spec)
		return answer
	}
	cases := map[string]struct {
		answer *unstructured.Unstructured
		want   string
	}{
		"as it was":          {answered(func(map[string]any) {}), ""},
		"by another ruleset": {answered(func(spec map[string]any) { spec[webhook.ProbeMark] = "other" }), `the API server's call was answered by ruleset "other", not "abc"`},
		"another text":       {answered(func(spec map[string]any) { spec["text"] = "x" }), "an object that the API server had converted there and back is not the same: .spec.text has another value"},
		"a rounded number":   {answered(func(spec map[string]any) { spec["number"] = int64(9007199254740992) }), "an object that the API server had converted there and back is not the same: .spec.number has another value"},
		"a field too many":   {answered(func(spec map[string]any) { spec["more"] = "x" }), "an object that the API server had converted there and back is not the same: .spec.more should not be there"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckAnswer(c.answer, "abc"); err != nil {
				got = err.Error()
			}
			expect.Equal(t, "error", c.want, got)
			expect.Equal(t, "recognized as an answer of a converter", true, Answered(c.answer))
		})
	}
	expect.Equal(t, "what no converter has seen is taken for an answer", false, Answered(ProbeRequest()))
}
