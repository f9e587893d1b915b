// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser opens the reports in internal/cli/report/testdata in Chromium. It asks the browser
// for what a reader sees, hears and presses: positions, contrast, the order of the Tab key, names
// for screen readers, and whether the page made network requests.
package browser
