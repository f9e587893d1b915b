// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac compares the operator's rights with its requests: the installed roles
// (reasons.go), the purpose of each rule (reasons.yaml), and the requests in the audit log of an
// API server (audit.go). The tables of api/docs/rights.md are generated from the first two. The
// end-to-end tests use the third after all stories.
package rbac
