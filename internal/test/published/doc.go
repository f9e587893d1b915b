// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package published reads the CustomResourceDefinitions of public projects out of
// their Go modules: schemas of many sizes and habits, as users have them in their
// clusters. Modules are downloaded once, and hold what their checksums say.
package published
