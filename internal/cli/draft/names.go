// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// words are what a field is compared by, without endings of plurals.
type words struct {
	// name are the words of the last name, in order; around those of the names above it.
	name, around []string
	// text are those of the description.
	text []string
}

// maxWords bounds the words of a description that are compared.
const maxWords = 60

// readWords sets the words of all fields, parents first.
func readWords(all []*field) {
	for _, f := range all {
		if f.parent != nil && !f.isElement() {
			f.words.name = stems(split(f.name()))
		}
		if f.parent != nil {
			f.words.around = distinct(append(slices.Clip(f.parent.words.around), f.parent.words.name...))
		}
		described := strings.FieldsFunc(strings.ToLower(f.schema.Description), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		described = slices.DeleteFunc(described, func(word string) bool { return len(word) < 3 })
		f.words.text = distinct(stems(described[:min(len(described), maxWords)]))
	}
}

func stems(all []string) (found []string) {
	for _, word := range all {
		found = append(found, stem(word))
	}
	return found
}

func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// split returns the words of a name such as hostPort or tls-secret, in lower case.
func split(name string) []string {
	var parts []string
	runes := []rune(name)
	start := 0
	end := func(i int) {
		if i > start {
			parts = append(parts, strings.ToLower(string(runes[start:i])))
		}
		start = i
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			start = i + 1
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end(i)
		}
	}
	end(len(runes))
	return parts
}

// stem removes the ending of a plural.
func stem(word string) string {
	switch {
	case len(word) > 4 && strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	case len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us"):
		return word[:len(word)-1]
	}
	return word
}

// opposites are words that tell two fields apart, however alike their names are otherwise.
var opposites = [][2]string{
	{"min", "max"}, {"minimum", "maximum"}, {"start", "end"}, {"first", "last"}, {"source", "target"}, {"source", "destination"},
	{"request", "limit"}, {"allow", "deny"}, {"enable", "disable"}, {"enabled", "disabled"}, {"read", "write"}, {"before", "after"},
	{"up", "down"}, {"ingress", "egress"}, {"client", "server"}, {"public", "private"}, {"success", "failure"}, {"successful", "failed"},
	{"liveness", "readiness"}, {"in", "out"}, {"include", "exclude"}, {"user", "group"}, {"requested", "used"}, {"desired", "current"},
}

// common are names that say too little without those above them.
var common = []string{
	"name", "namespace", "kind", "type", "value", "key", "id", "mode", "label", "annotation", "port", "image", "version", "group", "enabled",
	"path", "item", "reason", "message", "status", "spec", "ref", "config", "data", "size", "count", "rule", "match", "selector", "option",
}

// likeness is how alike two fields are by what their schemas say, from 0 to 1.
type likeness struct {
	score float64
	why   []string
}

func compareFields(spoke, hub *field) likeness {
	name, why := compareNames(spoke, hub)
	around := overlap(spoke.words.around, hub.words.around)
	if spoke.parent.words.name == nil && hub.parent.words.name == nil {
		around = max(around, 1)
	}
	found := likeness{why: []string{why}}
	text, described := 0.0, len(spoke.words.text) > 2 && len(hub.words.text) > 2
	if described {
		text = overlap(spoke.words.text, hub.words.text)
	}
	switch {
	case name == 0 && text < 0.8:
		return likeness{}
	case name == 0:
		// The description may be of the object around both.
		found.score, found.why = 0.45*text+0.2*around, []string{"other name"}
	case described:
		found.score = 0.55*name + 0.15*around + 0.30*text
	default:
		found.score = 0.8*name + 0.2*around
	}
	if name == 1 && around >= 0.6 {
		found.score = max(found.score, 0.72)
	}
	if described && text >= 0.5 {
		found.why = append(found.why, "alike description")
	}
	if len(spoke.children) > 0 && len(hub.children) > 0 {
		inside := sharedNames(spoke, hub)
		found.score = 0.6*found.score + 0.4*inside
		if inside >= 0.5 {
			found.why = append(found.why, "alike fields in it")
		}
	}
	elsewhere := around < 0.3 || len(without(spoke.words.around, hub.words.around)) > 0 && len(without(hub.words.around, spoke.words.around)) > 0
	if elsewhere && text < 0.5 && isCommon(spoke) && isCommon(hub) {
		found.score *= 0.6
	}
	return found
}

func isCommon(f *field) bool {
	return len(f.words.name) == 1 && slices.Contains(common, f.words.name[0])
}

// compareNames compares two last names, and says in words how.
func compareNames(spoke, hub *field) (float64, string) {
	a, b := spoke.words.name, hub.words.name
	if slices.Equal(a, b) {
		return 1, "same name"
	}
	onlyA, onlyB := without(a, b), without(b, a)
	for _, pair := range opposites {
		if slices.Contains(onlyA, pair[0]) && slices.Contains(onlyB, pair[1]) || slices.Contains(onlyA, pair[1]) && slices.Contains(onlyB, pair[0]) {
			return 0, ""
		}
	}
	if len(a) == 0 || len(b) == 0 {
		return 0, ""
	}
	if shared := len(a) - len(onlyA); shared > 0 {
		score := 2 * float64(shared) / float64(len(a)+len(b))
		if last := a[len(a)-1]; shared == 1 && last == b[len(b)-1] && len(onlyA) > 0 && len(onlyB) > 0 && slices.Contains(common, last) {
			score /= 2 // such as two references
		}
		return score, "alike name"
	}
	left, right := strings.ToLower(spoke.name()), strings.ToLower(hub.name())
	if len(left) > 4 && len(right) > 4 && len(left) < 40 && len(right) < 40 {
		if edits := compile.Distance(left, right); edits <= 2 {
			return 0.8, "alike spelling"
		}
	}
	return 0, ""
}

// without returns the words of a list that another one lacks.
func without(from, in []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(word string) bool { return slices.Contains(in, word) })
}

// overlap returns the share of words that both sorted lists have.
func overlap(a, b []string) float64 {
	shared, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch order := strings.Compare(a[i], b[j]); {
		case order == 0:
			shared, i, j = shared+1, i+1, j+1
		case order < 0:
			i++
		default:
			j++
		}
	}
	if all := len(a) + len(b) - shared; all > 0 {
		return float64(shared) / float64(all)
	}
	return 0
}

// sharedNames returns the share of names that the fields in two objects, or in their elements, have in
// common.
func sharedNames(a, b *field) float64 {
	a, b = cmp.Or(a.children[conversion.Each], a), cmp.Or(b.children[conversion.Each], b)
	shared := 0
	for name := range a.children {
		if b.children[name] != nil {
			shared++
		}
	}
	if all := len(a.children) + len(b.children) - shared; all > 0 {
		return float64(shared) / float64(all)
	}
	return 0
}
