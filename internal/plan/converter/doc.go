// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converter decides what converts objects, and the objects that the operator
// deploys for it. There are five kinds: compiled rules, an image of the user, a Service,
// a URL, and none. Each kind is a type in a file of its own and implements the interface
// in kind.go.
//
// Gather reads the observed cluster. It determines the desired revision, the revisions
// that API servers call, and those that must answer meanwhile (served.go). The gate
// Valid passes if the policy can be followed, and the gate Available if the converter's
// endpoints are ready. workload.go has what is deployed; render.go and reassert.go apply
// the patches of the policy; replace.go replaces a pod that answers incorrectly.
package converter
