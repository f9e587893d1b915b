// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape reports whether a value fits the schema of a version: whether the API
// server would accept it and prune nothing of it. A converter checks preserved values
// before it restores them, because everyone who may write an object may write its
// annotations.
//
// A schema is stripped (package strip), read once (read.go), and walked by field and element (schema.go). Fits walks a
// value and its schema together (fits.go), with the defaults filled in that an API server fills in before it validates
// (prune.go). The API server's validator checks scalars (limits.go); objects and lists are checked here, so that the
// first misfit ends the walk.
//
// The result differs from the API server's in these cases: CEL rules are not evaluated;
// and a list does not fit a string with a format, which the API server lets pass.
//
// The schema of a whole object does not cover its apiVersion, kind and metadata:
// Field and Fits are for other fields.
package shape
