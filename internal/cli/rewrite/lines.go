// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// lines finds the bytes of a text by line and column, as the YAML parser counts them: from 1,
// columns in characters.
type lines struct {
	text string
	// starts are the offsets of lines. The last one is the end of the text.
	starts []int
	// found is the last character that was sought: the next one is often behind it in the same line.
	found *character
}

type character struct{ line, column, at int }

func newLines(text string) lines {
	starts := []int{0}
	for i := 0; i < len(text); {
		size := breakAt(text, i)
		if size == 0 {
			_, size = utf8.DecodeRuneInString(text[i:])
			i += size
			continue
		}
		i += size
		starts = append(starts, i)
	}
	return lines{text, append(starts, len(text)), &character{line: 1, column: 1}}
}

// breakAt returns the size of the line break at an offset, 0 if there is none. The breaks are
// those of YAML 1.1, which the parser uses.
func breakAt(text string, at int) int {
	rest := text[at:]
	for _, lineBreak := range []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		if strings.HasPrefix(rest, lineBreak) {
			return len(lineBreak)
		}
	}
	return 0
}

// breakBefore returns the line break that ends at an offset, empty if there is none.
func (l lines) breakBefore(at int) string {
	for _, lineBreak := range []string{"\r\n", "\n", "\r"} {
		if strings.HasSuffix(l.text[:at], lineBreak) {
			return lineBreak
		}
	}
	return ""
}

// offset returns the offset of a character.
func (l lines) offset(line, column int) int {
	if l.found.line != line || l.found.column > column {
		*l.found = character{line, 1, l.starts[min(line-1, len(l.starts)-1)]}
	}
	for ; l.found.column < column && l.found.at < len(l.text); l.found.column++ {
		_, size := utf8.DecodeRuneInString(l.text[l.found.at:])
		l.found.at += size
	}
	return l.found.at
}

// line returns the number of the line of an offset, from 1.
func (l lines) line(at int) int {
	i, found := slices.BinarySearch(l.starts[:len(l.starts)-1], at)
	if found {
		return i + 1
	}
	return i
}

// start returns the offset at which the line of an offset starts.
func (l lines) start(at int) int { return l.starts[l.line(at)-1] }

// end returns the offset behind the line of an offset, with its break.
func (l lines) end(at int) int { return l.starts[l.line(at)] }

// begins reports whether only spaces are before an offset in its line.
func (l lines) begins(at int) bool { return strings.Trim(l.text[l.start(at):at], " ") == "" }

// content returns the text of a line without its break and white space at both ends.
func (l lines) content(at int) string { return strings.TrimSpace(l.text[l.start(at):l.end(at)]) }

func problemOf(err error) Problem {
	line := 1
	if at, ok := errors.AsType[*lineError](err); ok {
		line = at.line
	}
	return Problem{Line: line, Message: err.Error()}
}

// parse reads the documents of a text.
func parse(text string) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, parseError(err)
		}
		documents = append(documents, document)
	}
}

// parseError gives an error of the parser the line that its text names.
func parseError(err error) error {
	err = lineOfError(errors.New(strings.TrimPrefix(err.Error(), "yaml: ")))
	if at, ok := errors.AsType[*lineError](err); ok {
		return &lineError{at.line, fmt.Errorf("this is not YAML: %w", at.error)}
	}
	return fmt.Errorf("this is not YAML: %w", err)
}

// lineOfError takes the line from the start of an error's text.
func lineOfError(err error) error {
	line := 0
	if _, scanErr := fmt.Sscanf(err.Error(), "line %d:", &line); scanErr != nil {
		return err
	}
	_, text, _ := strings.Cut(err.Error(), ": ")
	return &lineError{line, errors.New(text)}
}
