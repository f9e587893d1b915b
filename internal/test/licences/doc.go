// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package licences detects the licences of all modules that are linked into the binary, with the
// library that pkg.go.dev uses, and compares them with allowed.txt. Command sbom adds them to the
// software bill of materials, and compares that with the binary.
package licences
