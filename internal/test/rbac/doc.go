// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac holds what the operator may do against what it does: the roles
// that are installed (installed.go), what each rule is for (reasons.yaml), and
// what an API server was asked, by its audit log (audit.go). api/docs/rights.md is
// written from the first two; the end-to-end tests look at the third when all
// stories were told.
package rbac
