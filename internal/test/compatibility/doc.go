// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compatibility tests the current version with objects that earlier versions wrote. Each
// folder of testdata has objects of one day: the installed CustomResourceDefinitions (crds),
// policies with the status that a manager wrote (policies), rulesets for converter pods (rulesets),
// and records of migrations (records). These files never change.
//
// A release adds a folder: copy config/crd/bases and, from a cluster with policies in many states,
// save ConversionPolicies without metadata.managedFields, the data of ConfigMaps with a ruleset
// under its hash, and those with a record.
//
// Before the first release, fields change in place. breaks.yaml declares what an earlier
// development version accepts or writes and this version does not, with the reason. A release empties
// it.
//
// The end-to-end tests run whole upgrades from the previous commit. Package schema, a module of its
// own, reports whether a schema became stricter.
package compatibility
