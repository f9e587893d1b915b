// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/kustomize/api/resource"
)

// object is the template of an object.
type object struct {
	id, kind string
	// owner is the component that adds it, empty for config/default.
	owner string
	// when are its conditions.
	when []string
	// lines are those of the installation that adds it.
	lines []line
	// end has what settings add after the lines.
	end line
}

// line is a line of an installation, the lines that settings add before it, and the conditions of the
// settings that remove it.
type line struct {
	text           string
	added, without []string
}

func newObject(id, kind, text string) *object {
	result := &object{id: id, kind: kind}
	for each := range strings.Lines(text) {
		result.lines = append(result.lines, line{text: each})
	}
	return result
}

func (o *object) texts() []string {
	result := make([]string, 0, len(o.lines))
	for _, each := range o.lines {
		result = append(result, each.text)
	}
	return result
}

// merge adds the difference to another variant, with the condition under which that is used.
func (o *object) merge(when string, other *object) {
	before := strings.Join(o.texts(), "")
	for _, edit := range udiff.Lines(before, strings.Join(other.texts(), "")) {
		first := strings.Count(before[:edit.Start], "\n")
		last := first + strings.Count(before[edit.Start:edit.End], "\n")
		for i := first; i < last; i++ {
			o.lines[i].without = append(o.lines[i].without, when)
		}
		at := &o.end
		if first < len(o.lines) {
			at = &o.lines[first]
		}
		if edit.New != "" {
			at.added = append(at.added, "{{- if "+when+" }}\n", edit.New, "{{- end }}\n")
		}
	}
}

// String returns the template.
func (o *object) String() string {
	result := &strings.Builder{}
	open := func(format string, conditions []string) {
		for _, each := range conditions {
			fmt.Fprintf(result, "{{- if "+format+" }}\n", each)
		}
	}
	closed := func(conditions []string) { result.WriteString(strings.Repeat("{{- end }}\n", len(conditions))) }
	open("%s", o.when)
	result.WriteString("---\n")
	var without []string
	for _, each := range append(o.lines, o.end) {
		if each.added != nil || !slices.Equal(each.without, without) {
			closed(without)
			result.WriteString(strings.Join(each.added, ""))
			open("not (%s)", each.without)
			without = each.without
		}
		result.WriteString(each.text)
	}
	closed(o.when)
	return result.String()
}

var (
	// block is a field or an item whose place the lines of an expression take.
	block = regexp.MustCompile(`(?m)^( *)(?:- )?helm: (.*)$`)
	// inline is an expression in a value.
	inline = regexp.MustCompile(`helm\((.*)\)`)
	// texts are texts that are something else in a chart. Of two at the same place, the first is used.
	texts = strings.NewReplacer(
		"{{", `{{ "{{" }}`,
		" conversion-system\n", " {{ .Release.Namespace | quote }}\n",
		"conversion-system", "{{ .Release.Namespace }}",
		"localhost/conversion-operator:dev", `{{ include "conversion-operator.image" . | quote }}`,
	)
)

// template returns the template of an object without conditions.
func template(text string) string {
	text = inline.ReplaceAllString(texts.Replace(text), "{{ $1 }}")
	return block.ReplaceAllStringFunc(text, func(line string) string {
		found := block.FindStringSubmatch(line)
		return fmt.Sprintf("%s{{- %s | nindent %d }}", found[1], found[2], len(found[1]))
	})
}

// read returns the template of an object that kustomize built.
func read(built *resource.Resource) (*object, error) {
	kind := built.GetKind()
	if kind != "Namespace" {
		labels := built.GetLabels()
		labels["helm"] = `include "conversion-operator.labels" .`
		if err := built.SetLabels(labels); err != nil {
			return nil, err
		}
	}
	text, err := built.AsYAML()
	return newObject(built.CurId().String(), kind, template(string(text))), err
}
