// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package measure times subjects that do the same work, and writes down what it
// found: as rows for programs (rows.go), and as tables for people (table.go).
//
// A machine is never as fast twice. So what counts is CPU time (clock_linux.go),
// which does not run while other processes have the CPU; on one core, so that
// what a subject leaves to the garbage collector is part of its time. And the
// subjects take turns, in several rounds (rounds.go): the shortest of them is what
// it takes when no one disturbs. Ratios between subjects of one run mean more than
// the times.
package measure
