// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package published reads the CustomResourceDefinitions of public projects from their Go modules:
// schemas of many sizes and styles, as in real clusters. Modules are downloaded once, and verified
// by checksum.
package published
