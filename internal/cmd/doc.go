// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of conversion-operator: one binary, and a
// subcommand for each of its parts. A subcommand turns flags into options, and
// runs what other packages provide.
//
// manager, serve and migrate run in pods, and log. The others are for people and
// their pipelines: they find policies and CustomResourceDefinitions in files
// (definitions.go) or in a cluster, which kubectl's flags choose (cluster.go),
// write to stdout what was asked for, in the form that was (output.go), and end
// with an exit code that means something (exit.go). Under another name, the same
// program is kubectl's plugin with these commands (plugin.go), and completes what
// people type (completion.go).
package cmd
