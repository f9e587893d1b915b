// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package playground answers the questions of a page on which users write rules: it is the same in the server of
// the command playground (playground/server) and in a page that runs without one, as WebAssembly (playground/wasm).
// It reads no file and no cluster. The page itself is in playground/page.
//
// All questions are about three texts: a CustomResourceDefinition, a ConversionPolicy, and objects (input.go).
//
// Check (check.go) is asked while the user types. It finds what is wrong and where, says how the
// fields of both versions correspond, converts the objects to every other version and back (objects.go), and
// tests them as verify does. Suggest (suggest.go) drafts rules for fields that have none, and Accept (suggest.go)
// inserts one into the policy, without a change of other lines. Complete (complete.go) says what can
// stand at the cursor. Test (check.go) tests the policy on objects of a cluster, which the caller reads.
package playground
