// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser opens reports in Chromium: those in internal/report/testdata, as
// that package makes them. What a reader would see, hear or press is asked of the
// browser: where things are, what can be read on what, where the tabulator leads,
// which names a screen reader says, and whether anything was asked of a network.
package browser
