// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of conversion-operator: one binary, and a
// subcommand for each of its parts. A subcommand turns flags into options, and
// runs what other packages provide.
package cmd
