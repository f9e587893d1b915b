// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify tries a policy's rules on objects, before anything depends on
// them, and reports what it saw. It reads no files and no cluster.
//
// A Checker (checker.go) holds the rules against a CustomResourceDefinition, as
// the operator does. Each object makes a trip there and back between every two
// versions (trip.go). On the way it is treated as an API server treats it
// (version.go): what its version does not know is pruned, and what the version
// forbids is found out before the next write would be refused. What comes back
// is compared with what left, number by number as they are written
// (difference.go). A field that a drop rule gives up may be missing; nothing
// else may. What travelled in an annotation is counted (kept.go).
//
// The Report (report.go) is what is known in the end: it does not grow with the
// number of objects, because alike findings are counted together (tally.go). It
// is written as text that reads well in a pull request (text.go), or as JSON.
//
// Package live reads objects from a cluster.
package verify
