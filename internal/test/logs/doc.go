// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs reads the program's own source, and holds every line that it may
// log to what api/docs/logs-and-traces.md promises.
package logs
