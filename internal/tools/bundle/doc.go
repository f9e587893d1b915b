// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bundle writes bundle/, from which the Operator Lifecycle Manager
// installs the operator. `make bundle` runs it.
//
// Everything in a bundle comes from somewhere else, and is written nowhere twice:
//
//   - what is installed, from config/manifests, which is config/default;
//   - what only catalogues want to know, from the ClusterServiceVersion in
//     config/manifests/bases and the icon beside it;
//   - the descriptors of fields, from the schema of ConversionPolicy;
//   - the examples, from config/samples;
//   - the tests of the Operator SDK, from config/scorecard.
//
// OLM makes Deployments, ServiceAccounts and roles itself, as the
// ClusterServiceVersion says (install.go). Objects of other kinds are files beside
// it, where OLM knows the kind (objects.go). What a bundle cannot carry is named
// there too: a new kind in config/ is an error until a client decides.
//
// The tests hold bundle/ against the Operator Framework's own validators, against
// what its scorecard looks at, and against config/.
//
// It is a module of its own, so that the libraries of the Operator Framework are
// not among those of the operator.
package main
