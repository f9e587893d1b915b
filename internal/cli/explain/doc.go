// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain traces each field of a converted object to the rule that produced it and
// to its sources, and lists what is preserved and why. It is pure: its input are the
// rules, the schemas and the object.
//
// An Explainer (explain.go) converts an object with the engine of converter pods: in one
// step between a spoke and the hub, in two between spokes. It finds the leaf field
// (leaf.go) of each field of the result (fields.go), and the rule of that
// field (rule.go). For each entry of the annotation it gives the reason (entries.go).
package explain
