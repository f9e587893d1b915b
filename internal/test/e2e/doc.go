// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator as it is installed, in real pods on a real
// cluster: the one of the current kubeconfig. `make e2e` brings the cluster.
//
// Tests run side by side, as policies do, each with a CustomResourceDefinition of
// its own. Those run alone that take the operator away, change how it or its
// namespace is set up, or count what the API server counts for all converters
// together; and the stories, which are to be read.
//
// Stories that take long begin with release.Only: `make e2e-release` plays them with all
// others, and `make test` names them at its end.
package e2e
