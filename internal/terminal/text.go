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

// Fit leaves out the last lines of a text that a screen has no room for, and
// counts them. The last row stays free for the cursor.
func Fit(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if rowsOf(lines, width) < height {
		return text
	}
	fitting := 0
	for fitting < len(lines) && rowsOf(lines[:fitting+1], width) < height-1 {
		fitting++
	}
	return strings.Join(append(lines[:fitting:fitting], Count(len(lines)-fitting, "more line"), ""), "\n")
}

// rowsOf is how many rows lines take: those that are longer than a screen is wide
// take several.
func rowsOf(lines []string, width int) int {
	rows := 0
	for _, line := range lines {
		rows += 1 + max(0, Width(line)-1)/max(1, width)
	}
	return rows
}
