// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds answers questions about a CustomResourceDefinition.
package crds
