// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape reports whether a value fits the schema of a version: whether the API
// server would accept it and prune nothing of it. A converter checks preserved values
// before it restores them, because everyone who may write an object may write its
// annotations.
//
// A schema is stripped (package strip), read once (read.go), and walked by field and element (schema.go). Fits first checks the bytes (scan.go, members.go):
// types, null, unknown and duplicate members, and the usual limits of strings.
// That is enough for most values. Other limits need decoding: the value is decoded once,
// as the API server does it, filled with defaults and validated (valid.go, lists.go,
// embedded.go). The API server's validator checks one value at a time, so that the first
// misfit ends the validation.
//
// The result differs from the API server's in these cases: CEL rules are not evaluated;
// duplicate members and invalid UTF-8 do not fit; and a list does not fit a string with a
// format, which the API server lets pass.
//
// The schema of a whole object does not cover its apiVersion, kind and metadata:
// Field and Fits are for other fields.
package shape
