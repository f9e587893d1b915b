// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the server that answers an API server's ConversionReviews.
//
// A converter pod runs it. The pod reaches for nothing: its rules are compiled
// before the server listens, its certificate is a mounted file, and it has no
// access to the API. So conversions go on whatever happens to the operator.
//
// The story of a call, and the files that tell it:
//
//	server.go   accepts a TLS connection with the certificate that is on disk now
//	handler.go  routes: /convert, /ruleset, /healthz, /readyz and nothing else
//	limiter.go   lets it wait until there is memory for it
//	body.go     takes the body, within its limits
//	convert.go  makes an exchange of it: body in, answer out
//	review.go   walks once through the body, on the scanner of scanner.go, and
//	objects.go  lets the Converter write every object where it is found
//	answer.go   ends the answer, or replaces it as a whole by a failure
//	metrics.go  counts, for Prometheus at a port of its own
//
// An API server sends one object in each review, does so for every read of an
// object that is stored in another version, and retries nothing but what it is
// told to. What counts is therefore the latency of one object, that a kept
// connection is never closed under a call, and that every failure says what a
// person in front of kubectl can act on: its message is shown after "conversion
// webhook for <gvk> failed:".
//
// A review needs no memory but its exchange, which is used again: neither for an
// object nor for what is counted.
//
// Package probe, below, is the other end: it examines a pod that runs this
// server the way an API server would.
package webhook
