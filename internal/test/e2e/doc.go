// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator as it is installed, in real pods on a real
// cluster: the one of the current kubeconfig. `make e2e` brings the cluster.
package e2e
