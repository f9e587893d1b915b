// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package velero backs up custom resources with Velero's own code, converts the backup with the
// program, and restores it with Velero's code into another API server.
package velero
