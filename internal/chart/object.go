// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
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
	lines []string
	// added and begins stand before a line, and ends after it. Some settings remove a line.
	added, begins, ends map[int][]string
	removed             map[int]bool
}

func newObject(id, kind, text string) *object {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return &object{id: id, kind: kind, lines: lines, added: map[int][]string{}, begins: map[int][]string{}, ends: map[int][]string{}, removed: map[int]bool{}}
}

// merge adds the lines of another variant, with the condition under which they are used.
func (o *object) merge(when string, lines []string) error {
	for _, each := range difflib.NewMatcherWithJunk(o.lines, lines, false, nil).GetOpCodes() {
		begin, other := "{{- if "+when+" }}", lines[each.J1:each.J2]
		switch each.Tag {
		case 'i':
			if i := each.I1; i > 0 && i < len(o.lines) && o.removed[i-1] && o.removed[i] && o.begins[i] == nil {
				return o.conflict(when, i)
			}
			o.added[each.I1] = slices.Concat(o.added[each.I1], []string{begin}, other, []string{"{{- end }}"})
		case 'd', 'r':
			for i := each.I1; i < each.I2; i++ {
				if o.removed[i] || i > each.I1 && o.added[i] != nil {
					return o.conflict(when, i)
				}
				o.removed[i] = true
			}
			o.begins[each.I1] = slices.Concat([]string{begin}, other, []string{"{{- else }}"})
			o.ends[each.I2-1] = []string{"{{- end }}"}
		}
	}
	return nil
}

func (o *object) conflict(when string, line int) error {
	return fmt.Errorf("%s: %q changes lines that another setting changes: %s", o.id, when, o.lines[line])
}

// String returns the template.
func (o *object) String() string {
	var lines []string
	for _, each := range o.when {
		lines = append(lines, "{{- if "+each+" }}")
	}
	lines = append(lines, "---")
	for i, each := range o.lines {
		lines = slices.Concat(lines, o.added[i], o.begins[i], []string{each}, o.ends[i])
	}
	lines = append(lines, o.added[len(o.lines)]...)
	for range o.when {
		lines = append(lines, "{{- end }}")
	}
	return strings.Join(lines, "\n") + "\n"
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
