// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs parses the source of the program, and checks every log call against the promises of
// api/docs/logs-and-traces.md.
package logs
