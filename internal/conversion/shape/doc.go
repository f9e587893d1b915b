// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape says whether a value fits a version's schema: whether the API
// server would accept it and prune nothing of it. A converter asks before it
// writes a preserved value into an object, as an annotation can be written by
// anyone who may write the object.
//
// A schema arrives stripped (package strip), is read once (read.go) and walked by
// field and element (schema.go). Fits looks at the bytes first (scan.go, members.go):
// type, null, unknown and duplicate members, and the usual limits of strings.
// That is enough for most values. If a schema on the path limits its values, they
// are decoded once, as the API server decodes them, filled with defaults and
// validated (valid.go, lists.go, embedded.go), one value at a time with the API
// server's own validator, so that the first misfit ends it.
//
// The result is the API server's but for this: CEL rules are not evaluated; a
// member that is written twice, and text that is not UTF-8, do not fit; and a list
// does not fit a string with a format, which the API server lets pass.
//
// The schema of a whole object says nothing of its apiVersion, kind and metadata:
// Field and Fits are for what is below them.
package shape
