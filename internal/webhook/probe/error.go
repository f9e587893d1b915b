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

// Reason says why a pod did not pass. It fits a condition's reason.
type Reason string

// The reasons, in the order in which a probe comes across them.
const (
	// ReasonInvalidCABundle means that the CA bundle holds no certificate.
	ReasonInvalidCABundle Reason = "InvalidCABundle"
	// ReasonConnectionRefused means that nothing listens at the pod's port.
	ReasonConnectionRefused Reason = "ConnectionRefused"
	// ReasonUnreachable means that the network reports no way to the pod, or
	// that the connection broke.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonTimeout means that a step took longer than the context allowed.
	ReasonTimeout Reason = "Timeout"
	// ReasonTLSVerificationFailed means that the pod's certificate is not valid
	// by the CA bundle, for the server name, or at this time.
	ReasonTLSVerificationFailed Reason = v1alpha1.ReasonTLSVerificationFailed
	// ReasonUnexpectedAnswer means that something else than a converter answered,
	// or that the converter refused the request.
	ReasonUnexpectedAnswer Reason = v1alpha1.ReasonUnexpectedAnswer
	// ReasonWrongRuleset means that the pod serves other rules than it should.
	ReasonWrongRuleset Reason = v1alpha1.ReasonWrongRuleset
	// ReasonCanaryFailed means that a canary could not be converted, or not as expected.
	ReasonCanaryFailed Reason = v1alpha1.ReasonCanaryFailed
)

// Error is why a pod did not pass.
type Error struct {
	// Reason is one of the constants.
	Reason Reason
	// Message tells users what is wrong, and where they can do something, what.
	// It holds no time of day, no uid and no port of the caller.
	Message string
}

// refusal is the Error of a converter that answered as it should, and would not convert.
type refusal struct{ cause *Error }

func (r *refusal) Error() string { return r.cause.Message }

func (r *refusal) Unwrap() error { return r.cause }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func failf(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// step is a part of a probe that can hang or break.
type step struct {
	name string
	// hint says what to look at when the step takes too long.
	hint string
}

const (
	hintNetwork = "check that no NetworkPolicy, firewall or service mesh stops the operator from reaching converter pods"
	hintPod     = "the pod accepts connections but does not get to answering: check its CPU limit and its log"
)

// fail turns the error of a step into one for users. A cancelled probe has
// nothing to tell them.
func (s step) fail(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil || timedOut(err):
		return failf(ReasonTimeout, "%s timed out: %s", s.name, s.hint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failf(ReasonConnectionRefused, "%s: connection refused: nothing listens at that port", s.name)
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

// tlsDetail says why a certificate was not accepted. An expired one is told by
// its own dates, for the library's text holds the current time.
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

// innermost strips what net and net/http put around an error: among it the
// caller's port, which differs each time.
func innermost(err error) string {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err.Error()
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}
