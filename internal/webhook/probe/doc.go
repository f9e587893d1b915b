// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe verifies a converter pod before API servers call it, by the same requests.
//
// A probe connects to one pod and not to the Service. It trusts only the caBundle that is, or will
// be, in the CustomResourceDefinition:
//
//	connect         TCP to the pod
//	verify          TLS, with the server name that API servers use
//	ruleset         the pod serves the expected ruleset
//	canary objects  the answers to ConversionReviews are valid for an API server,
//	                and have the expected objects
//
// A failure is an Error. Its reason and message are suitable for status conditions: they are stable
// as long as the cause is the same.
package probe
