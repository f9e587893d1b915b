// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of conversion-operator: one binary, and a
// subcommand for each of its parts. A subcommand turns flags into options, and
// runs what other packages provide.
//
// manager and run-migration run in pods, and log. The others are for users and
// their pipelines: they read policies and CustomResourceDefinitions from files
// (definitions.go) or from a cluster, which kubectl's flags select (cluster.go),
// write the result to stdout in the requested format (output.go), and return a
// documented exit code (exit.go). Under another name, the same program is kubectl's
// plugin with these commands (plugin.go), and completes what users type
// (completion.go).
package cmd
