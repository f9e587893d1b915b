// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure times subjects that do the same work, and writes down what it
// found: as rows for programs (rows.go), and as tables for people (table.go).
//
// A machine is never as fast twice. So the subjects take turns, in several
// rounds (rounds.go): what slows the machine down for a while slows all of them,
// and the shortest of the rounds is what it takes when nobody disturbs. Ratios
// between subjects of one run mean more than the times.
package measure
