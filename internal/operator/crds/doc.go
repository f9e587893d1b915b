// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds reads CustomResourceDefinitions: their versions, what these offer clients besides
// objects, the field managers that own parts of them, canary objects made from their schemas, and
// the components that need their objects before pods can start. It compiles rules for them, except
// those for fields that Crossplane writes.
package crds
