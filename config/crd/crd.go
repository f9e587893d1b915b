// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the installed CustomResourceDefinition of ConversionPolicy, so that policies
// can be validated without a cluster.
package crd

import _ "embed" // for the file below

// ConversionPolicies is the CustomResourceDefinition in YAML.
//
//go:embed bases/conversion-operator.io_conversionpolicies.yaml
var ConversionPolicies []byte
