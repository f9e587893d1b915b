// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columnSeparator separates two columns.
const columnSeparator = "   "

// WriteTable writes rows in columns. The first row is the header. It writes nothing if there are
// no other rows.
func WriteTable(w io.Writer, rows [][]string) error {
	if len(rows) < 2 {
		return nil
	}
	widths := widthsOf(rows)
	var out strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			out.WriteString(cell)
			if i < len(row)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-Width(cell)) + columnSeparator)
			}
		}
		out.WriteString("\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func widthsOf(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// Width returns the number of characters that a text takes on a screen. Escape sequences for
// colours take none.
func Width(text string) int {
	width := 0
	for text != "" {
		before, sequence, found := strings.Cut(text, "\x1b[")
		width += utf8.RuneCountInString(before)
		if !found {
			return width
		}
		_, text, _ = strings.Cut(sequence, "m")
	}
	return width
}
