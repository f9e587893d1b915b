// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package licences reads the licences of all modules that are linked into the
// binary, and holds them against allowed.txt. The texts are told apart by the
// library with which pkg.go.dev does it. Command sbom writes them into the software
// bill of materials, and holds that against the binary.
package licences
