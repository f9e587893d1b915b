// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Reason is why a pod failed its probe. It is a valid reason of a condition.
type Reason string

// The reasons, in the order of the steps of a probe.
const (
	// ReasonInvalidCertificate means that the CA bundle has no certificate.
	ReasonInvalidCertificate Reason = v1alpha1.ReasonInvalidCertificate
	// ReasonUnreachable means that there was no answer: no process listens, the Service has no
	// endpoint, there is no route, the connection was lost, or a step took too long.
	ReasonUnreachable Reason = v1alpha1.ReasonUnreachable
	// ReasonTLSVerificationFailed means that the certificate is not valid for the CA bundle, for
	// the server name, or at this time.
	ReasonTLSVerificationFailed Reason = v1alpha1.ReasonTLSVerificationFailed
	// ReasonUnexpectedAnswer means that the answer is not that of a converter, or that the
	// converter refused the request.
	ReasonUnexpectedAnswer Reason = v1alpha1.ReasonUnexpectedAnswer
	// ReasonWrongRuleset means that the pod does not serve the expected ruleset.
	ReasonWrongRuleset Reason = v1alpha1.ReasonWrongRuleset
	// ReasonCanaryFailed means that a canary object could not be converted, or not as expected.
	ReasonCanaryFailed Reason = v1alpha1.ReasonCanaryFailed
)

// Error is why a pod failed its probe.
type Error struct {
	// Reason is one of the constants.
	Reason Reason
	// Message says what is wrong, and what to do if users can do something. It contains no time,
	// uid or local port, which would change it.
	Message string
}

// refusal is the Error of a converter that answered correctly that it does not convert.
type refusal struct{ cause *Error }

func (r *refusal) Error() string { return r.cause.Message }

func (r *refusal) Unwrap() error { return r.cause }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func failf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// step is a step of a probe that can time out or fail.
type step struct {
	name string
	// hint says what to check when the step times out.
	hint string
}

const (
	hintNetwork = "check that no NetworkPolicy, firewall or service mesh stops the operator from reaching converter pods"
	hintPod     = "the pod accepts connections but does not get to answering: check its CPU limit and its log"
)

// fail converts the error of a step into an *Error, or returns that of ctx if it was cancelled.
func (s step) fail(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil || timedOut(err):
		return failf(ReasonUnreachable, "%s timed out: %s", s.name, s.hint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failf(ReasonUnreachable, "%s: connection refused: nothing listens at that port", s.name)
	}
	if detail := tlsDetail(err); detail != "" {
		return failf(ReasonTLSVerificationFailed, "%s: %s", s.name, detail)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return failf(ReasonUnreachable, "%s: %s: %s", s.name, errno.Error(), hintNetwork)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return failf(ReasonUnreachable, "%s: the connection was closed by the other side", s.name)
	}
	return failf(ReasonUnexpectedAnswer, "%s: %s", s.name, bounded(innermost(err)))
}

func timedOut(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return ok && network.Timeout()
}

// tlsDetail returns why a certificate was not accepted. For an expired one it shows the validity,
// because the text of the library contains the current time.
func tlsDetail(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired && invalid.Cert != nil {
		return fmt.Sprintf("the certificate %q is not valid now: it is valid from %s to %s",
			invalid.Cert.Subject.String(), invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return verification.Err.Error()
	}
	return ""
}

// innermost removes the wrapping of net and net/http, which contains the local port.
func innermost(err error) string {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err.Error()
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}
