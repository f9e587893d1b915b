// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live reads the input of package verify from a cluster: the policy, the
// CustomResourceDefinition, and the objects, page by page and as the API server sends
// them. It writes nothing.
package live
