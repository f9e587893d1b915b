// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converters measures conversion webhooks on the same ConversionReviews, as http.Handlers
// that are called without a network.
//
// The kind is Task. The rules between its two versions (crd.yaml) are of most kinds (rules.yaml).
// The subjects (subjects.go) are
//
//   - ours: the handler of a converter pod with the compiled rules,
//   - controller-runtime's hub-and-spoke handler with Go types (typed.go),
//   - the example of the Kubernetes documentation, which edits decoded maps (unstructured.go),
//   - handlers that convert nothing (floor.go): they read the body, check that it is JSON, and send it back, which is the minimum for any converter.
//
// Before the measurement, all converters must agree on every response (agree.go), including the
// field that one version lacks and that is preserved in an annotation, so that no subject does
// less.
//
// latency.go measures processes through TLS: a converter pod that serves one kind, one that serves many
// idle kinds besides, and controller-runtime's handler (served.go).
//
// ready.go measures how soon a converter process is ready with a ruleset of a thousand leaf fields,
// and its memory while idle.
package converters
