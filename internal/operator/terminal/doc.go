// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal formats output for users: columns that stay aligned with coloured cells, and
// text from servers that cannot move the cursor. Callers decide whether to use colours.
package terminal
