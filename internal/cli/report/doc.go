// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes one HTML file about a policy: its versions, how their fields
// correspond, the rules, the results of tested objects, and the history of the
// operator. It is pure: it uses no client, no file and no clock.
//
// Write (report.go) turns an Input into a page (page.go), and the page into HTML (templates,
// style.css), with the result of verify. The page has these other parts: versions.go has the graph of
// versions, mapping.go the links between the fields of a spoke and of the hub, drawing.go the
// rows and curves for them, rules.go the rules in words, and status.go conditions, migration and
// events.
//
// The file is complete, and its Content-Security-Policy allows only one style sheet, by its
// hash: no script, no image, no font and no request. html/template escapes everything that
// comes from objects. The same input gives the same bytes.
package report
