// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report makes one HTML file of a policy: its versions, how their fields
// correspond, the rules, the results of tested objects, and the history of the
// operator. It is pure: no client, no file, no clock.
//
// Write turns an Input into a page (page.go), and the page into HTML (templates,
// style.css). The page has these parts: versions.go has the graph of versions,
// mapping.go the links between the fields of a spoke and of the hub, drawing.go the
// rows and curves for them, rules.go the rules in words, tried.go the result of
// verify, status.go conditions and migration, and history.go the events.
//
// The file needs nothing else, and its Content-Security-Policy allows nothing else:
// no script, no image, no font, no request, and one style sheet by its hash.
// html/template escapes everything that comes from objects. The same input makes the
// same file, byte for byte.
package report
