// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
	"unicode"
)

// OneLine removes line breaks and control characters from a server's text.
func OneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, text)
	return strings.Join(strings.Fields(printable), " ")
}

// OrDash returns a text, or a dash if it is empty.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Count returns a number with its noun: "1 error", "2 errors".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Fit drops the last lines of a text that do not fit on a screen, and counts them. The last row
// stays free for the cursor.
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

// rowsOf returns how many rows the lines take on a screen of this width.
func rowsOf(lines []string, width int) int {
	rows := 0
	for _, line := range lines {
		rows += 1 + max(0, Width(line)-1)/max(1, width)
	}
	return rows
}
