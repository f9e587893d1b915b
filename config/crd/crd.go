// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinition of ConversionPolicy, as
// installed: so that a policy can be validated where there is no cluster.
package crd

import _ "embed" // for the file below

// ConversionPolicies is the CustomResourceDefinition as YAML.
//
//go:embed bases/conversion-operator.io_conversionpolicies.yaml
var ConversionPolicies []byte
