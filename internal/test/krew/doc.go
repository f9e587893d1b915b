// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew checks the krew package of the kubectl plugin against the rules of krew's
// internal/index/validation and internal/installation, because krew itself is no Go module that
// every machine can fetch.
package krew
