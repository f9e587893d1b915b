// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema holds the CustomResourceDefinitions of this revision against earlier
// ones: no field may go, none may become stricter. It compares with crdify, which
// is a module of Kubernetes' own; what crdify has no rule for, such as CEL rules, is
// proven by package compatibility, on an API server. `make compatibility` runs it.
package schema
