// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

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
