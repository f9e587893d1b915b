// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// writer writes a template.
type writer struct {
	bytes.Buffer
	// verbatim keeps the namespace of config/default in texts.
	verbatim bool
}

// line writes one line with an indentation.
func (w *writer) line(indent int, text string) {
	fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", indent), text)
}

// write writes a value that begins on the current line, after a key or the dash of an item.
// The lines after that have the indentation.
func (w *writer) write(value node, indent int) error {
	switch value := value.(type) {
	case *mapping:
		w.WriteString("\n")
		return w.fields(value.fields, indent)
	case *list:
		w.WriteString("\n")
		return w.items(value.items, indent-2)
	case map[string]any:
		if len(value) == 0 {
			w.WriteString(" {}\n")
			return nil
		}
		w.WriteString("\n")
		return w.fields(plainFields(value), indent)
	case []any:
		if len(value) == 0 {
			w.WriteString(" []\n")
			return nil
		}
		w.WriteString("\n")
		return w.items(plainItems(value), indent-2)
	case text:
		w.WriteString(" " + string(value) + "\n")
		return nil
	}
	return w.scalar(value, indent)
}

func plainFields(value map[string]any) []field {
	fields := make([]field, 0, len(value))
	for _, key := range slices.Sorted(maps.Keys(value)) {
		fields = append(fields, field{key: key, value: value[key]})
	}
	return fields
}

func plainItems(value []any) []item {
	items := make([]item, 0, len(value))
	for _, each := range value {
		items = append(items, item{value: each})
	}
	return items
}

func (w *writer) fields(fields []field, indent int) error {
	for _, each := range fields {
		lines, isText := each.value.(text)
		chosen, isChoice := each.value.(*choice)
		err := w.when(each.when, indent, func() error {
			switch {
			case isText && each.key == "":
				w.lines(indent, string(lines))
				return nil
			case isChoice:
				return w.choice(each.key, chosen, indent)
			}
			return w.field(each.key, each.value, indent)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) field(key string, value node, indent int) error {
	name, err := w.encode(key)
	if err != nil {
		return err
	}
	w.WriteString(strings.Repeat(" ", indent) + name + ":")
	return w.write(value, indent+2)
}

func (w *writer) choice(key string, chosen *choice, indent int) error {
	w.line(indent, "{{- if "+conjunction([]string{expression(chosen.component)})+" }}")
	if err := w.field(key, chosen.with, indent); err != nil {
		return err
	}
	w.line(indent, "{{- else }}")
	if err := w.field(key, chosen.without, indent); err != nil {
		return err
	}
	w.line(indent, "{{- end }}")
	return nil
}

func (w *writer) items(items []item, indent int) error {
	for _, each := range items {
		if err := w.when(each.when, indent, func() error { return w.item(each.value, indent) }); err != nil {
			return err
		}
	}
	return nil
}

// item writes an item. The first field of an object is on the line of the dash.
func (w *writer) item(value node, indent int) error {
	if lines, is := value.(text); is {
		w.lines(indent, string(lines))
		return nil
	}
	inner := writer{verbatim: w.verbatim}
	if err := inner.write(value, indent+2); err != nil {
		return err
	}
	written := inner.String()
	if first, rest, _ := strings.Cut(written, "\n"); first == "" {
		written = " " + strings.TrimLeft(rest, " ")
	}
	w.WriteString(strings.Repeat(" ", indent) + "-" + written)
	return nil
}

// lines writes hand-written lines, and puts their indentation into them.
func (w *writer) lines(indent int, lines string) {
	lines = strings.NewReplacer("<indent>", strconv.Itoa(indent), "<indent+2>", strconv.Itoa(indent+2)).Replace(lines)
	for line := range strings.Lines(lines) {
		w.line(indent, strings.TrimSuffix(line, "\n"))
	}
}

// when writes something with a condition.
func (w *writer) when(when condition, indent int, write func() error) error {
	test := when.String()
	if test == "" {
		return write()
	}
	w.line(indent, "{{- if "+test+" }}")
	if err := write(); err != nil {
		return err
	}
	w.line(indent, "{{- end }}")
	return nil
}

// String returns the condition as a pipeline of a template, empty if it is always met.
func (c condition) String() string {
	tests := slices.Clone(c.other)
	switch some := expressions(c.anyOf); len(some) {
	case 0:
	case 1:
		tests = append(tests, some[0])
	default:
		tests = append(tests, "(or "+strings.Join(some, " ")+")")
	}
	for _, each := range expressions(c.noneOf) {
		tests = append(tests, "(not "+each+")")
	}
	return conjunction(tests)
}

// conjunction returns the pipeline that is true if all of them are, each a value or in parentheses.
func conjunction(tests []string) string {
	switch {
	case len(tests) > 1:
		return "and " + strings.Join(tests, " ")
	case len(tests) == 1 && strings.HasPrefix(tests[0], "("):
		return tests[0][1 : len(tests[0])-1]
	}
	return strings.Join(tests, "")
}

func expressions(components []string) []string {
	result := make([]string, 0, len(components))
	for _, each := range components {
		result = append(result, expression(each))
	}
	return result
}

// scalar writes a text, a number or a boolean. A text of several lines continues on the next ones.
func (w *writer) scalar(value any, indent int) error {
	encoded, err := w.encode(value)
	if err != nil {
		return err
	}
	first, rest, several := strings.Cut(encoded, "\n")
	w.WriteString(" " + first + "\n")
	if !several {
		return nil
	}
	for line := range strings.Lines(rest) {
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			w.WriteString("\n")
			continue
		}
		w.line(indent-2, line)
	}
	return nil
}

// namespace is the namespace of config/default. Charts use that of the release.
const namespace = "conversion-system"

// encode returns a scalar in YAML, in which templates leave braces alone.
func (w *writer) encode(value any) (string, error) {
	if replaced, has := replacements[value]; has && !w.verbatim {
		return replaced, nil
	}
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return "", err
	}
	result := strings.ReplaceAll(strings.TrimSuffix(string(encoded), "\n"), "{{", `{{ "{{" }}`)
	if w.verbatim {
		return result, nil
	}
	return strings.ReplaceAll(result, namespace, "{{ .Release.Namespace }}"), nil
}

// replacements are texts that are something else in a chart.
var replacements = map[any]string{
	namespace:                           "{{ .Release.Namespace | quote }}",
	"localhost/conversion-operator:dev": `{{ include "conversion-operator.image" . | quote }}`,
}
