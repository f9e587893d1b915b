// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// template is a text with actions of Go templates, as in charts of Helm. For the YAML parser, an
// action in a line with other text is a word, and a line of actions is a comment, or a word if it
// writes the value of the key above. An object with actions is rewritten only if that is right for
// every value that they may write:
//
//   - A field with an action, or around one, is copied or moved as a whole.
//   - Where lines are optional, only text within lines changes, and it changes in the same way if
//     the optional lines are missing.
//   - Lines of actions stay where they are. They may add fields to the metadata only.
type template struct {
	// words are the words in the hidden text, with the action for which each stands. lines are
	// the hidden lines, with the whole line for which each stands.
	words, lines map[string]string
	// optional are the first and the last hidden lines of blocks.
	optional [][2]string
	// unclear are lines whose meaning depends on values.
	unclear []unclearError
}

type unclearError struct {
	lineError
	// fields is true if the line can only write fields around it.
	fields bool
}

// The keywords of actions, https://pkg.go.dev/text/template#hdr-Actions.
var (
	blockKeywords = []string{"if", "range", "with"}
	otherKeywords = []string{"define", "block", "else", "break", "continue"}
)

// leftmost matches an action that writes at the start of lines.
var leftmost = regexp.MustCompile(`indent\s+0\b`)

// hide replaces the actions in a text by words and comments. It returns nil for a text without any.
func hide(text string) (hidden string, t *template, err error) {
	if !strings.Contains(text, "{{") {
		return text, nil, nil
	}
	t = &template{words: map[string]string{}, lines: map[string]string{}}
	prefix := "Q"
	for strings.Contains(text, prefix) {
		prefix += "q"
	}
	var out strings.Builder
	var open []int
	hiddenLines := map[int]string{}
	texts := slices.Collect(strings.Lines(text))
	for i, line := range texts {
		actions, rest, err := actionsIn(line)
		if err != nil {
			return "", nil, &lineError{i + 1, err}
		}
		word := func(n int) string { return fmt.Sprintf("%s%dx%dz", prefix, i, n) }
		switch {
		case len(actions) == 0:
			out.WriteString(line)
		case strings.TrimSpace(rest) != "":
			for n, action := range actions {
				t.words[word(n)] = action
				line = strings.Replace(line, action, word(n), 1)
			}
			out.WriteString(line)
		default:
			end := line[len(strings.TrimRight(line, "\r\n")):]
			margin := line[:len(line)-len(strings.TrimLeft(line, " "))]
			valueOf := -1
			if slices.ContainsFunc(actions, writes) {
				valueOf = keyAbove(texts, i)
			}
			hiddenLine := margin + "# " + word(0) + end
			if valueOf >= 0 {
				t.words[word(0)] = word(0)
				hiddenLine = strings.Repeat(" ", max(len(margin), valueOf+1)) + word(0) + end
			}
			t.lines[hiddenLine], hiddenLines[i] = line, hiddenLine
			out.WriteString(hiddenLine)
			if open, err = t.note(open, i, hiddenLines, actions, valueOf >= 0); err != nil {
				return "", nil, &lineError{i + 1, err}
			}
		}
	}
	if len(open) > 0 {
		return "", nil, &lineError{open[0] + 1, errors.New("this block of the template has no end")}
	}
	return out.String(), t, nil
}

// note records what a line of actions means. It returns the lines at which open blocks begin.
func (t *template) note(open []int, line int, hidden map[int]string, actions []string, isValue bool) ([]int, error) {
	for _, action := range actions {
		switch keyword := keywordOf(action); {
		case strings.HasPrefix(keyword, "/*"):
		case slices.Contains(blockKeywords, keyword):
			open = append(open, line)
		case keyword == "end":
			if len(open) == 0 {
				return nil, errors.New("this end of a template has no beginning")
			}
			t.optional = append(t.optional, [2]string{hidden[open[len(open)-1]], hidden[line]})
			open = open[:len(open)-1]
		case slices.Contains(otherKeywords, keyword) || strings.HasPrefix(keyword, "$") && strings.Contains(action, "="):
			t.unclear = append(t.unclear, unclearError{lineError{line + 1, fmt.Errorf("what the template writes depends on %q", keyword)}, false})
		case !isValue:
			indented := !leftmost.MatchString(action)
			t.unclear = append(t.unclear, unclearError{lineError{line + 1, errors.New("the template writes fields here that only its values name")}, indented})
		}
	}
	return open, nil
}

// keywordOf returns the first word of an action.
func keywordOf(action string) string {
	keyword, _, _ := strings.Cut(strings.TrimSpace(strings.Trim(action, "{}-")), " ")
	return keyword
}

// writes reports whether an action writes text by itself.
func writes(action string) bool {
	keyword := keywordOf(action)
	return keyword != "end" && !strings.HasPrefix(keyword, "/*") && !slices.Contains(blockKeywords, keyword) && !slices.Contains(otherKeywords, keyword)
}

// actionsIn returns the actions of a line, and the line without them.
func actionsIn(line string) (actions []string, rest string, err error) {
	for {
		before, after, found := strings.Cut(line, "{{")
		rest += before
		if !found {
			return actions, rest, nil
		}
		end := endOfAction(after)
		if end < 0 {
			return nil, "", errors.New("an action of a template ends in another line")
		}
		actions, line = append(actions, "{{"+after[:end]), after[end:]
	}
}

// endOfAction returns the offset behind the next }} that is not in quotes, or -1.
func endOfAction(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '`':
			length := strings.IndexByte(text[i+1:], text[i])
			if length < 0 {
				return -1
			}
			i += length + 1
		case '}':
			if strings.HasPrefix(text[i:], "}}") {
				return i + 2
			}
		}
	}
	return -1
}

// keyAbove returns the indentation of the key above a line if the line is its whole value, or -1.
func keyAbove(lines []string, at int) int {
	margin := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	if at == 0 {
		return -1
	}
	key, _, _ := strings.Cut(lines[at-1], " #")
	if key = strings.TrimRight(key, " \r\n"); !strings.HasSuffix(key, ":") || strings.Contains(key, "{{") {
		return -1
	}
	for _, next := range lines[at+1:] {
		if text := strings.TrimSpace(next); text != "" && text[0] != '#' {
			if !strings.HasPrefix(text, "{{") && (margin(next) > margin(key) || strings.HasPrefix(text, "-") && margin(next) == margin(key)) {
				return -1
			}
			break
		}
	}
	return margin(strings.Replace(key, "- ", "  ", 1))
}

// restore puts the actions back into a text.
func (t *template) restore(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if original, hidden := t.lines[line]; hidden {
			line = original
		}
		out.WriteString(line)
	}
	var pairs []string
	for word, action := range t.words {
		pairs = append(pairs, word, action)
	}
	return strings.NewReplacer(pairs...).Replace(out.String())
}

// within returns what is unclear between two lines, counted from 1. Lines that write fields into
// the metadata are clear: these are the same in all versions.
func (t *template) within(from, to int, metadata [2]int) []unclearError {
	var found []unclearError
	for _, each := range t.unclear {
		isMetadata := each.fields && each.line > metadata[0] && each.line < metadata[1]
		if each.line >= from && each.line <= to && !isMetadata {
			found = append(found, each)
		}
	}
	return found
}

// linesIn returns the lines of actions in a hidden text.
func (t *template) linesIn(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if _, hidden := t.lines[line]; hidden {
			found = append(found, line)
		}
	}
	return found
}

// optionalIn returns the optional blocks whose first and last lines are among lines, and whether
// no block has only one of them there.
func (t *template) optionalIn(lines []string) (blocks [][2]string, whole bool) {
	whole = true
	for _, block := range t.optional {
		begins, ends := slices.Contains(lines, block[0]), slices.Contains(lines, block[1])
		if whole = whole && begins == ends; begins && ends {
			blocks = append(blocks, block)
		}
	}
	return blocks, whole
}

// unsafe returns the fields with text of the template that a rule changes.
func (t *template) unsafe(c *converted) []fieldProblem {
	var problems []fieldProblem
	fields := fieldsOf(&c.explanation)
	visit(c.before, nil, func(at path, text string) {
		if !t.has(text) || at[0] == "metadata" {
			return
		}
		if !slices.ContainsFunc(fields, func(f movedField) bool { return f.plain && at.isIn(f.before) }) {
			problems = append(problems, fieldProblem{at, "the template writes its value, which a rule converts or spreads over several fields"})
		}
	})
	return problems
}

// has reports whether a text has a word of the template.
func (t *template) has(text string) bool {
	for word := range t.words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// visit calls do for each string in a value, and for each name of a member.
func visit(value any, at path, do func(at path, text string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			do(at.child(name), name)
			visit(member, at.child(name), do)
		}
	case []any:
		for i, element := range value {
			visit(element, at.child(index(i)), do)
		}
	case string:
		do(at, value)
	}
}

// withoutBlocks returns a hidden text without the lines of some blocks.
func withoutBlocks(text string, blocks [][2]string) string {
	var out strings.Builder
	inside := ""
	for line := range strings.Lines(text) {
		if inside == "" {
			for _, block := range blocks {
				if line == block[0] {
					inside = block[1]
				}
			}
		}
		if inside == "" {
			out.WriteString(line)
		}
		if line == inside {
			inside = ""
		}
	}
	return out.String()
}

// metadataOf returns the first line of an object's metadata, and that of the member behind it.
func (w *rewriting) metadataOf(n *node) [2]int {
	for i, e := range n.entries {
		if e.name != "metadata" {
			continue
		}
		if i+1 < len(n.entries) {
			return [2]int{w.line(e.start), w.line(n.entries[i+1].start)}
		}
		return [2]int{w.line(e.start), w.line(e.end)}
	}
	return [2]int{}
}

// safe reports whether the new text of an object is right for everything that a template may write.
func (w *rewriting) safe(n *node, text string) bool {
	old, text := belowHead(w.text[n.start:n.end]), belowHead(text)
	before, after := w.actions.linesIn(old), w.actions.linesIn(text)
	if !slices.Equal(before, after) {
		return false
	}
	blocks, whole := w.actions.optionalIn(before)
	if len(blocks) == 0 {
		return whole
	}
	variants := [][][2]string{blocks}
	for _, block := range blocks {
		variants = append(variants, [][2]string{block})
	}
	for _, missing := range variants {
		if n.column > 0 || !w.same(withoutBlocks(old, missing), withoutBlocks(text, missing)) {
			return false
		}
	}
	return whole
}

// belowHead returns a text without the comments and blank lines at its start.
func belowHead(text string) string {
	for line := range strings.Lines(text) {
		if content := strings.TrimSpace(line); content != "" && content[0] != '#' {
			break
		}
		text = text[len(line):]
	}
	return text
}

// same reports whether an API server makes the same of an object converted, and of another text.
func (w *rewriting) same(before, after string) bool {
	var values []any
	for _, text := range []string{before, after} {
		documents, err := parse(text)
		if err != nil || len(documents) != 1 {
			return false
		}
		values = append(values, valueOf(documents[0]))
	}
	c, err := w.convert("", preserved.Encode(values[0]))
	if err != nil || len(c.lost) > 0 {
		return false
	}
	wanted, err := w.defaults.Fill(w.to, c.after)
	if err != nil {
		return false
	}
	has, err := w.defaults.Fill(w.to, values[1])
	return err == nil && reflect.DeepEqual(has, wanted)
}
