// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet decides about a ConverterFleet: its pods, their certificate, and its status. What a
// policy does in a fleet is decided by package converter, in operator/plan/converter/shared.go: it stores its rulesets,
// proves them in every pod, and points its CustomResourceDefinition at the Service of the fleet.
//
// A certificate of a new authority is served after every CustomResourceDefinition that the fleet
// converts for trusts that authority. The policies write caBundle there, each when it may.
package fleet
