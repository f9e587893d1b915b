// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// warnRequired names the fields that one side requires and an object from the other side may lack.
// Such an object can be read but not written back unchanged. This includes fields that are dropped
// or preserved: an object that was created on the other side never had them.
func (c *compiler) warnRequired() {
	for _, ofHub := range []bool{true, false} {
		target, source := c.sides(ofHub)
		walker := &requiredWalker{c: c, target: target, source: source, ofHub: ofHub}
		walker.object(target.schema, source.schema, nil)
		if len(walker.lacking) > 0 {
			c.warn("%s requires what an object from %s may lack: %s: such an object can be read at %s, and not be written there until it is set: give the field a default in the schema of %s, or by a rule",
				target.version, source.version, few(walker.lacking), target.version, target.version)
		}
	}
}

// requiredWalker walks the schema of the target, beside the schema of the source.
type requiredWalker struct {
	c              *compiler
	target, source *side
	ofHub          bool
	lacking        []string
}

// object examines the required fields of an object, and then its fields. The source is nil if it
// has no such object.
func (w *requiredWalker) object(target, source *schema.Structural, at conversion.Path) {
	for _, name := range validationOf(target).Required {
		property := target.Properties[name]
		path := append(slices.Clip(at), name)
		if property.Default.Object != nil || len(at) == 0 && conversion.IsEnvelope(name) {
			continue
		}
		if cause := w.cause(path, name, source); cause != "" {
			w.lacking = append(w.lacking, w.target.shown(path).String()+" ("+cause+")")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(target.Properties)) {
		if len(at) > 0 || !conversion.IsEnvelope(name) {
			property := target.Properties[name]
			w.value(&property, fieldOf(source, name), append(slices.Clip(at), name))
		}
	}
}

func fieldOf(s *schema.Structural, name string) *schema.Structural {
	if s == nil {
		return nil
	}
	if found, there := s.Properties[name]; there {
		return &found
	}
	return nil
}

// value examines a field. The field of the same name at the source may be another field. A field
// that is preserved as a whole also comes back as a whole.
func (w *requiredWalker) value(target, source *schema.Structural, at conversion.Path) {
	if contains(w.target.preserved, at) {
		return
	}
	if claim := claimOf(w.target.claims, at); claim != nil {
		w.ruled(target, claim)
		return
	}
	if isClaimed(w.source.claims, at) {
		source = nil
	}
	w.inside(target, source, at)
}

func (w *requiredWalker) inside(target, source *schema.Structural, at conversion.Path) {
	if elements := elementsOf(target); elements != nil {
		var others *schema.Structural
		if source != nil {
			others = elementsOf(source)
		}
		w.value(elements, others, append(slices.Clip(at), conversion.Each))
		return
	}
	w.object(target, source, at)
}

// ruled examines what a rule moves as a whole. It ignores what a rule computes.
func (w *requiredWalker) ruled(target *schema.Structural, to *claim) {
	from := w.c.partner(*to, w.source.claims)
	if from != nil && to.rule.Move != nil && w.c.placeBy(to.rule) == nil {
		w.moved(target, from, to)
	}
}

func (w *requiredWalker) moved(target *schema.Structural, from, to *claim) {
	source, err := resolve(w.source.schema, from.path)
	if err != nil {
		return
	}
	below := &requiredWalker{
		c: &compiler{}, ofHub: w.ofHub,
		target: &side{version: w.target.version, schema: target}, source: &side{version: w.source.version, schema: source},
	}
	below.inside(target, source, to.path)
	w.lacking = append(w.lacking, below.lacking...)
}

// cause returns why a required field may be missing. It is empty if the field is always set.
func (w *requiredWalker) cause(path conversion.Path, name string, source *schema.Structural) string {
	claims := w.target.claims
	claim := claimOf(claims, path)
	other := fieldOf(source, name)
	switch {
	case claim != nil:
		return w.ruleCause(claim)
	case hasClaimBelow(claims, path):
		return "" // rules that set fields in it create it
	case other == nil, contains(w.target.preserved, path):
		return w.source.version + " does not have it"
	case !isAlwaysSet(source, name) && !w.c.hasField(path, !w.ofHub):
		return w.source.version + " does not require it"
	}
	return ""
}

// isAlwaysSet reports whether a field of an object is required or has a default.
func isAlwaysSet(s *schema.Structural, name string) bool {
	return slices.Contains(validationOf(s).Required, name) || s.Properties[name].Default.Object != nil
}

// ruleCause returns why the rule that sets a field may leave it out.
func (w *requiredWalker) ruleCause(to *claim) string {
	switch {
	case to.rule.Drop != nil:
		return shortRule(to.rule.fldPath.String()) + " drops it"
	case to.rule.Default != nil:
		return ""
	}
	fromNothing := to.rule.spokeFromNothing
	if w.ofHub {
		fromNothing = to.rule.hubFromNothing
	}
	isComputed := contains(fromNothing, to.path)
	if lacking := w.optionalSources(to); len(lacking) > 0 && !isComputed {
		return fmt.Sprintf("%s does not require %s, from which it comes", w.source.version, few(lacking))
	}
	if w.c.mayLeaveOut(to.rule, !w.ofHub) {
		return shortRule(to.rule.fldPath.String()) + " leaves it out where it cannot express the value"
	}
	return ""
}

// optionalSources returns the optional fields without which a rule sets nothing. Only if all
// sources of a format rule are optional does it return them.
func (w *requiredWalker) optionalSources(to *claim) []string {
	var lacking []string
	for _, from := range w.source.claims {
		if from.rule != to.rule {
			continue
		}
		switch field := w.optional(from.path, to.path); {
		case field != nil:
			lacking = append(lacking, w.source.shown(field).String())
		case to.rule.Format != nil:
			return nil
		}
	}
	return lacking
}

// optional returns the first field of a path that an object of the source may lack, nil if it has
// all of them. A prefix that both paths share exists on both sides or on neither.
func (w *requiredWalker) optional(path, other conversion.Path) conversion.Path {
	current := w.source.schema
	for i, segment := range path {
		shared := len(other) > i+1 && len(path) > i+1 && path.HasPrefix(other[:i+1])
		if segment != conversion.Each && !shared && path[0] != "metadata" && valuesOf(current) == nil && !isAlwaysSet(current, segment) && !w.c.hasField(path[:i+1], !w.ofHub) {
			return path[:i+1]
		}
		if path[0] == "metadata" || segment != conversion.Each && valuesOf(current) != nil {
			return path // no one can require a label, or a key of a map
		}
		if current = childOf(current, segment); current == nil {
			return nil
		}
	}
	return nil
}
