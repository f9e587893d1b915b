// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converter decides what converts objects, and the objects that the operator
// deploys for it. There are six kinds: compiled rules in pods of the policy, compiled rules
// in a fleet, an image of the user, a Service, a URL, and none. Each kind is a type in a
// file of its own and implements the interface in kind.go.
//
// Gather reads the observed cluster. It determines the desired revision, the revisions
// that API servers call, and those that must answer meanwhile (served.go). The gate
// Valid passes if the policy can be followed, and the gate Available if the converter's
// endpoints are ready. deploy.go has what is deployed for the policy alone, rendered by
// package workload. shared.go stores rulesets in the shards of a fleet, and has the moves
// between a fleet and pods of the policy. replace.go replaces a pod that answers incorrectly.
package converter
