// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure times subjects that do the same work, and writes the results: as rows for
// programs (rows.go), and as tables for people (table.go).
//
// The speed of a machine varies. So the package measures CPU time (clock_linux.go), which excludes
// other processes, on one core, so that it includes the garbage collection of a subject. The
// subjects take turns, in several rounds (rounds.go). The shortest round is the undisturbed time.
// Ratios between subjects of one run mean more than times.
package measure
