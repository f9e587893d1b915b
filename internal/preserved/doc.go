// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preserved looks at preserved data from outside: what the annotations of
// an object hold, and what becomes of it when something converts the object. It
// is pure, and knows nothing of rules: objects go in, decoded from JSON with the
// text of their numbers.
//
// An Object (object.go) has the entries of its annotations. An entry is about a
// place (place.go). Its fate (fate.go) shows in what a conversion gives: it is
// data, or was deleted, or is carried on in the annotation, or is lost. A value
// that is carried on has an obstacle, which is also told there.
package preserved
