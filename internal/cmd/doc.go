// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of conversion-operator: one binary, and a
// subcommand for each of its parts. A subcommand turns flags into options, and
// runs what other packages provide.
//
// manager, serve and migrate run in pods, and log. convert, verify, report and
// audit are for people and their pipelines: they find policies and CustomResourceDefinitions
// in files (definitions.go), write to stdout what was asked for, and end with an
// exit code that means something (exit.go).
package cmd
