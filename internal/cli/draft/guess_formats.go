// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"regexp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// guessFormats finds strings whose name is those of several fields, such as hostPort, and whose
// description shows how they are joined.
func (g *guesser) guessFormats() {
	byFirstWord := map[place][]*field{}
	for _, f := range g.openFields(g.hubs) {
		if len(f.words.name) > 0 && (f.kind == "string" || f.kind == "integer") {
			at := place{f.parent, f.words.name[0]}
			byFirstWord[at] = append(byFirstWord[at], f)
		}
	}
	for _, f := range g.openFields(g.spokes) {
		partner := g.pairs.partner[f.parent]
		if f.kind != "string" || partner == nil || len(f.words.name) < 2 {
			continue
		}
		parts := partsOf(f, partner, byFirstWord)
		if len(parts) < 2 {
			continue
		}
		template, joined := templateIn(f.schema.Description, parts)
		if !joined {
			g.undecidedBecause[f] = "its name is that of several fields, and the schemas do not tell how they are joined: write a format rule"
			for _, part := range parts {
				g.rivals[f] = append(g.rivals[f], candidate{f, part, likeness{0.5, []string{"part of the name"}}})
			}
			continue
		}
		rule := &v1alpha1.FormatRule{From: pathOf(f), Template: template, To: map[string]v1alpha1.Path{}}
		for _, part := range parts {
			rule.To[part.name()] = pathOf(part)
		}
		g.accept([]*hypothesis{{
			rule: v1alpha1.Rule{Format: rule}, spoke: []*field{f}, hub: parts, score: 0.75,
			why: []string{"the name joins theirs", "the description shows the template"},
		}})
	}
}

// place is a word at the beginning of names in an object.
type place struct {
	object *field
	word   string
}

// partsOf returns the fields of an object whose names, one after the other, are that of f.
func partsOf(f, object *field, byFirstWord map[place][]*field) (parts []*field) {
	for rest := f.words.name; len(rest) > 0; rest = rest[len(parts[len(parts)-1].words.name):] {
		bucket := byFirstWord[place{object, rest[0]}]
		i := slices.IndexFunc(bucket[:min(len(bucket), maxBucket)], func(part *field) bool {
			n := len(part.words.name)
			return n <= len(rest) && slices.Equal(part.words.name, rest[:n]) && !slices.Contains(parts, part)
		})
		if i < 0 {
			return nil
		}
		parts = append(parts, bucket[i])
	}
	return parts
}

// templateIn finds the names of fields in a description, joined by punctuation.
func templateIn(description string, parts []*field) (template string, found bool) {
	var pattern, text strings.Builder
	for i, part := range parts {
		if i > 0 {
			pattern.WriteString(`[>}\])]?([:/@,;|=.-]+)[<{\[(]?`)
		}
		pattern.WriteString("(?i:" + regexp.QuoteMeta(part.name()) + ")")
	}
	match := regexp.MustCompile(pattern.String()).FindStringSubmatch(description)
	if match == nil {
		return "", false
	}
	for i, part := range parts {
		if i > 0 {
			text.WriteString(match[i])
		}
		text.WriteString("{" + part.name() + "}")
	}
	return text.String(), true
}
