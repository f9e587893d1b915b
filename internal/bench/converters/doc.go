// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converters measures conversion webhooks on the same ConversionReviews,
// as http.Handlers that are called without a network.
//
// The kind is Task, with two versions (crd.yaml) between which rules of most
// kinds lie (rules.yaml). The subjects (subjects.go) are
//
//   - ours: the handler of a converter pod around the compiled rules,
//   - controller-runtime's hub-and-spoke handler around Go types (typed.go),
//   - the Kubernetes documentation's way, edits of decoded maps (unstructured.go),
//   - and handlers that convert nothing (floor.go): they read the body, check that
//     it is JSON, and send it back. Less than that no converter can do.
//
// Before anything is timed, all that convert must agree on every answer
// (agree.go), the field that one version lacks and that is kept in an annotation
// included. A subject that did less would win unfairly.
//
// The other question is how soon a converter is ready, and what it costs while it
// waits (ready.go): with a plan of a thousand leaves, as a process.
package converters
