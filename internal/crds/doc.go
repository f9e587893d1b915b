// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds reads CustomResourceDefinitions: their versions, the field managers that own parts
// of them, and canary objects made from their schemas.
package crds
