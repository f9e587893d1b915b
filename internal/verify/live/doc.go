// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live reads from a cluster what package verify is to look at: the
// policy, the CustomResourceDefinition, and the objects, page by page and as the
// API server sends them. It writes nothing.
package live
