// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and writes objects in the forms in which people keep
// them: YAML and JSON, in files, directories and streams, several in a file, and
// lists of them.
//
// A Document is one of the texts in a file, as JSON (document.go). Of a list,
// its items are the objects (list.go). What is not touched stays: JSON keeps its
// bytes, and YAML its numbers, whatever their size, for no value ever passes
// through a float (yaml.go). In all else YAML is read as kubectl reads it.
// Objects are written in the form in which they came, or in another one
// (write.go).
package manifest
