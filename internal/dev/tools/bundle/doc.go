// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bundle writes bundle/, from which the Operator Lifecycle Manager installs the operator.
// `make bundle` runs it.
//
// The content of a bundle is generated from other files:
//
//   - the installation, from config/manifests, which is config/default;
//   - data for catalogues, from the ClusterServiceVersion in config/manifests/bases and the icon beside it;
//   - the descriptors of fields, from the schema of ConversionPolicy;
//   - the examples, from config/samples;
//   - the tests of the Operator SDK, from config/scorecard.
//
// OLM creates Deployments, ServiceAccounts and roles from the ClusterServiceVersion (install.go).
// Objects of other kinds are separate files, if OLM supports the kind (objects.go), which also
// lists what a bundle cannot have. A new kind in config/ is an error until it is in one of the
// lists.
//
// The tests compare bundle/ with the Operator Framework's validators, its scorecard, and config/.
package main
