// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
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

// Color is the escape sequence of a colour.
type Color string

// The colours of the terminal's palette.
const (
	Plain  Color = ""
	Red    Color = "\x1b[31m"
	Green  Color = "\x1b[32m"
	Yellow Color = "\x1b[33m"
	Cyan   Color = "\x1b[36m"
	Bold   Color = "\x1b[1m"
	Dim    Color = "\x1b[2m"
)

const reset = "\x1b[0m"

// Colors reports whether the output has colours.
type Colors bool

// In returns a text in a colour, or the plain text if the output has no colours.
func (c Colors) In(color Color, text string) string {
	if !c || color == Plain || text == "" {
		return text
	}
	return string(color) + text + reset
}

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
