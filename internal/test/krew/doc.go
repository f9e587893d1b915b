// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew tests how kubectl's plugin is packed for krew, by the rules of krew's
// internal/index/validation and internal/installation: krew itself is no Go module
// that every machine can fetch.
package krew
