// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the installed operator, in real pods on the cluster of the current kubeconfig.
// `make test-e2e` starts the cluster.
//
// Tests run in parallel, like policies, each with its own CustomResourceDefinition. Some run alone:
// those that remove the operator, that change the configuration of the operator or its namespace,
// or that use metrics of the API server for all converters together, and the stories, whose output
// people read.
//
// Slow stories begin with release.Only: `make test-e2e-release` runs all stories.
package e2e
