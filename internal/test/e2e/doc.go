// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the installed operator, in real pods on the cluster of the current kubeconfig.
// `make test-e2e` starts the cluster.
//
// Each story proves once what only real pods show: images, Pod Security, rights, nodes that fail, watch
// caches and the kubelet's volumes, upgrades, and the commands of the pages. Other packages prove what the
// operator decides.
//
// Tests run in parallel, like policies, each with its own CustomResourceDefinition. Some run alone:
// those that remove the operator, or change its configuration or its namespace, and TestStory, whose
// output people read.
//
// Slow stories begin with release.Only: `make test-e2e-release` runs all stories.
package e2e
