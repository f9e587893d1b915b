// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal writes for people who sit before one: columns that stay
// aligned whatever is coloured in them, and text of others that cannot move the
// cursor. Whether there are colours is the caller's to say.
package terminal
