// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests config/ as users apply it: by kubectl, on a real API
// server, in every way that there is, and in a namespace of theirs.
package install
