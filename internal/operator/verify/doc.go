// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify tests a policy's rules on objects, before anything depends on
// them, and reports the result. It reads no files and no cluster.
//
// A Checker (checker.go) compiles the rules against a CustomResourceDefinition, like
// the operator. Each object makes a round trip between every two versions (trip.go).
// On the way, the Checker treats it like an API server (version.go): it prunes what
// the version does not know, and validates the object as the next write would. It
// compares the returned object with the original, including the text of numbers
// (difference.go). Only a field that a drop rule gives up may be missing. The Checker
// counts what annotations preserved on the way, and finds preserved data that is lost (entries.go).
// At each other version it also edits the object as clients do (edit.go), and finds what an edit
// discards without concerning it (edits.go). It notes which fields objects have, and so which
// rules were tried (seen.go). It records conversions in a golden file, and repeats recorded ones (golden.go).
//
// The Report (report.go) is the final result: it does not grow with the number of
// objects, because equal findings are counted together (tally.go). It can be written
// as text for a pull request (text.go), or as JSON.
//
// Package live reads objects from a cluster.
package verify
