// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report makes one HTML file of a policy: its versions, which field of one
// is which of another, the rules, what became of objects that were tried, and what
// the operator has done. It is pure: no client, no file, no clock.
//
// Write turns an Input into a page (page.go), and the page into HTML (templates,
// style.css). The page is made of parts: versions.go has the graph of versions,
// mapping.go the links between the fields of a spoke and of the hub, drawing.go the
// rows and curves that show them, rules.go the rules in words, tried.go what verify
// found, status.go conditions and migration, and history.go what happened when.
//
// The file needs nothing else, and its Content-Security-Policy allows nothing else:
// no script, no image, no font, no request, and the one style sheet by its hash.
// Everything that comes from objects passes through html/template. The same input
// makes the same file, to the byte.
package report
