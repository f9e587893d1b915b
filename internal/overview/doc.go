// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview describes the progress of a policy for users. It is
// pure: the policy, its pods and the time go in, text comes out.
//
// Of (overview.go) reads a policy's status: its gates in order, its versions, its
// converter and its migration. advice.go adds what to do next, each with the
// command for it, and progress.go how much of a migration is done.
//
// An Overview is written as a page about one policy (page.go), as a row of a
// table of many (row.go), or as one line for each thing that happens (line.go).
package overview
