// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compatibility holds what earlier versions have written against the version
// of now. Each folder of testdata is what was there on a day: the CustomResourceDefinitions
// that were installed (crds), policies with the status that a manager of that day gave
// them (policies), rulesets that converter pods served (rulesets), and records of migrations
// (records). Nothing of it is ever changed.
//
// A release adds a folder: copy config/crd/bases, and from a cluster with policies in
// many states save ConversionPolicies without metadata.managedFields, the data of
// ConfigMaps with a ruleset under its hash, and those with a record.
//
// Upgrades as a whole, from the commit before, are among the end-to-end tests; whether a
// schema became stricter is told by package schema, a module of its own.
package compatibility
