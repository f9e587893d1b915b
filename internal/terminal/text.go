// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
	"unicode"
)

// OneLine keeps what a server says in its row, and from moving the cursor.
func OneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, text)
	return strings.Join(strings.Fields(printable), " ")
}

// OrDash is a text, and a dash in place of none.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Count says how many there are of what: "1 error", "2 errors".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
