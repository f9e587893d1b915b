// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preserved reads preserved data from outside the engine: the entries in the
// annotations of an object, and what happens to them in a conversion. It is pure, and
// knows no rules: its input are objects, read by Decode.
//
// A Resource (object.go) reads the annotations of an object. Each entry is about one
// field or element, which a JSON pointer names (path.go). The Fate of an entry (fate.go)
// follows from the object before and after a conversion. Obstacle gives the reason why an
// entry stays in the annotation.
package preserved
