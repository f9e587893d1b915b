// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"regexp/syntax"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// warnLabels names the labels that a rule may give a value which is not a valid label value. The
// API server would refuse the object, so the value is preserved and the label is left out.
func (c *compiler) warnLabels() {
	for _, ofHub := range []bool{true, false} {
		target, source := c.root().sides(ofHub)
		var labels []string
		for _, to := range target.claims {
			if !to.path.IsLabel() || to.rule.Drop != nil {
				continue
			}
			if from := c.partner(to); from == nil || !c.fitsLabel(from) {
				labels = append(labels, to.path[2])
			}
		}
		if len(labels) > 0 {
			c.warn("objects at %s lack the label %s where its value from %s is none that a label can have: bound the field in %s by maxLength: 63 and a pattern such as ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$, or use an annotation",
				target.version, few(labels), source.version, source.version)
		}
	}
}

// fitsLabel reports whether a rule gives a label only valid values.
func (c *compiler) fitsLabel(from *claim) bool {
	source, _ := from.in.sides(from.ofHub)
	s, err := source.resolve(from.path)
	switch {
	case err != nil || s.Nullable:
		return false
	case from.isText() && from.path.IsLabel():
		return true
	}
	return from.rule.fitsLabel != nil && from.rule.fitsLabel(from.rule, s, !from.ofHub)
}

// isLabelText reports whether every text that a schema allows is a valid label value.
func isLabelText(s *schema.Structural) bool {
	if values := enumOf(s); values != nil {
		return !slices.ContainsFunc(values, func(value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
	}
	v := validationOf(s)
	if v.Format == "k8s-short-name" || v.Format == "uuid" {
		return true
	}
	if v.MaxLength == nil || *v.MaxLength > int64(validation.LabelValueMaxLength) || v.Pattern == "" {
		return false
	}
	// The API server matches patterns with Go's regexp, too.
	pattern, err := syntax.Parse(v.Pattern, syntax.Perl)
	if err != nil {
		return false
	}
	program, err := syntax.Compile(pattern.Simplify())
	return err == nil && (&labelMatcher{Prog: program, seen: map[labelState]bool{}}).fits(labelState{pc: program.Start})
}

// labelMatcher follows all texts that a pattern matches. It knows no boundaries of lines and words.
type labelMatcher struct {
	*syntax.Prog
	seen map[labelState]bool
}

// labelState is an instruction of a pattern's program, and what has been matched before it.
type labelState struct {
	pc int
	// atBegin and atEnd report whether the pattern is anchored there, inside whether there is a character, and alphanumeric
	// whether the last one is a letter or a digit.
	atBegin, atEnd, inside, alphanumeric bool
}

// fits reports whether all texts that go on from a state have only characters of labels, with a letter or digit first and
// last, and are all of the value.
func (m *labelMatcher) fits(s labelState) bool {
	if m.seen[s] {
		return true
	}
	m.seen[s] = true
	inst, next := &m.Inst[s.pc], s
	next.pc = int(inst.Out)
	switch inst.Op {
	case syntax.InstMatch:
		return s.atBegin && s.atEnd && (!s.inside || s.alphanumeric)
	case syntax.InstAlt, syntax.InstAltMatch:
		other := s
		other.pc = int(inst.Arg)
		return m.fits(next) && m.fits(other)
	case syntax.InstCapture, syntax.InstNop:
		return m.fits(next)
	case syntax.InstEmptyWidth:
		begin, end := syntax.EmptyOp(inst.Arg) == syntax.EmptyBeginText, syntax.EmptyOp(inst.Arg) == syntax.EmptyEndText
		next.atBegin, next.atEnd = s.atBegin || begin, s.atEnd || end
		return begin && s.inside || (begin || end) && m.fits(next) // nothing is before the begin
	case syntax.InstRune, syntax.InstRune1:
		next.inside, next.alphanumeric = true, allRunes(inst, isAlphanumeric)
		fits := s.atBegin && (next.alphanumeric || s.inside && allRunes(inst, func(r rune) bool { return isAlphanumeric(r) || strings.ContainsRune("-_.", r) }))
		return s.atEnd || fits && m.fits(next) // nothing is behind the end
	}
	return inst.Op == syntax.InstFail
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// allRunes reports whether all characters that an instruction matches are allowed, none in both cases.
func allRunes(inst *syntax.Inst, allowed func(rune) bool) bool {
	if len(inst.Rune) == 1 {
		return syntax.Flags(inst.Arg)&syntax.FoldCase == 0 && allowed(inst.Rune[0])
	}
	for i := 0; i+1 < len(inst.Rune); i += 2 {
		for r := inst.Rune[i]; r <= inst.Rune[i+1]; r++ {
			if !allowed(r) {
				return false
			}
		}
	}
	return true
}
