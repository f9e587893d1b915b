// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and writes objects in YAML and JSON: in files, directories and
// streams, with several documents in a file, and lists of objects.
//
// A Document is one object or list of a file, as JSON (document.go). The objects of a list
// are its items (list.go). Unchanged parts keep their text: JSON keeps its bytes, and YAML
// its numbers of any size, because no value becomes a float (yaml.go). Otherwise YAML is
// read like kubectl. Documents are written in the form in which they were read, or in
// another one (write.go).
package manifest
