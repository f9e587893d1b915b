// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema compares the CustomResourceDefinitions of this revision with earlier ones: no
// field may be removed or become stricter. It uses crdify, a Kubernetes project. Package
// compatibility tests on an API server what crdify has no rule for, such as CEL rules. `make
// compatibility` runs this package.
package schema
