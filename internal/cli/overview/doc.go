// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview describes the progress of a policy for users. It is pure: its input is
// the policy, its pods and the time, its output is text.
//
// Of (overview.go) reads the status of a policy: its gates in order, its versions, its
// converter and its migration. advice.go adds recommended actions with their commands, and
// row.go the progress of a migration.
//
// An Overview is written as a page (page.go, page_sections.go), as a row of a table of policies, or as one
// line of a log (row.go).
package overview
