// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade reads what an earlier release stored in a cluster. The folder testdata/v0.1 was
// recorded at the first release and is never regenerated, and each later release that changes a
// format adds a folder. Until the first release, `go test -update` records it again.
package upgrade
