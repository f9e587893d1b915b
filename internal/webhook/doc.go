// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the server that answers an API server's ConversionReviews.
//
// A converter pod runs it. The pod reaches for nothing: its rules are compiled
// before the server listens, its certificate is a mounted file, and it has no
// access to the API. So conversions go on whatever happens to the operator.
//
// The story of a call:
//
//	Server   accepts a TLS connection with the certificate that is on disk now
//	Handler  routes: /convert, /plan, /healthz, /readyz and nothing else
//	review   finds the objects in the body as spans of bytes, never decoding them
//	Converter writes every converted object behind the previous one
//	reply    is written once, with its length, or replaced as a whole by a failure
//
// An API server sends one object in each review, does so for every read of an
// object that is stored in another version, and retries nothing. What counts is
// therefore the latency of one object, that a kept connection is never closed
// under a call, and that every failure says what a person in front of kubectl
// can act on: its message is shown after "conversion webhook for <gvk> failed:".
//
// Package probe, below, is the other end: it examines a pod that runs this
// server the way an API server would.
package webhook
