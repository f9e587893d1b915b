// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe examines a converter pod the way an API server would call it,
// before an API server is told to.
//
// A probe goes to one pod, past the Service, and trusts nothing but the very
// bytes that are, or will be, the caBundle of the CustomResourceDefinition:
//
//	connect  TCP to the pod
//	verify   TLS, with the name that API servers ask for
//	ruleset     the pod serves the rules that it should
//	canary objects ConversionReviews come back as an API server demands, and with
//	         the objects that were expected
//
// What fails is told by an Error, whose reason and message are made for status
// conditions: both stay the same as long as the cause does.
package probe
