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
		var lacking []string
		for _, f := range c.frames {
			lacking = append(lacking, f.lacking(ofHub)...)
		}
		if target, source := c.root().sides(ofHub); len(lacking) > 0 {
			c.warn("%s requires what an object from %s may lack: %s: such an object can be read at %s, and not be written there until it is set: give the field a default in the schema of %s, or by a rule",
				target.version, source.version, few(lacking), target.version, target.version)
		}
	}
}

// lacking returns the fields of the frame that one side requires and an object from the other side may lack.
func (f *frame) lacking(ofHub bool) []string {
	w := &requiredWalker{frame: f, ofHub: ofHub}
	w.target, w.source = f.sides(ofHub)
	w.value(w.target.schema, w.source.schema, nil)
	return w.found
}

// requiredWalker walks the schema of the target, beside the schema of the source.
type requiredWalker struct {
	*frame
	target, source *side
	ofHub          bool
	found          []string
}

// object examines the required fields of an object, and then its fields. The source is nil if it
// has no such object.
func (w *requiredWalker) object(target, source *schema.Structural, at conversion.Path) {
	for _, name := range validationOf(target).Required {
		property := target.Properties[name]
		path := append(slices.Clip(at), name)
		if property.Default.Object != nil || w.target.isEnvelope(at, name) {
			continue
		}
		if cause := w.cause(path, name, source); cause != "" {
			w.found = append(w.found, w.target.shown(path).String()+" ("+cause+")")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(target.Properties)) {
		if !w.target.isEnvelope(at, name) {
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
	from := w.partner(*to)
	if from == nil || to.rule.Move == nil || w.frameOf(to.rule) != nil {
		return
	}
	holder, _ := from.in.sides(!w.ofHub)
	source, err := holder.resolve(from.path)
	if err != nil {
		return
	}
	moved := &frame{compiler: &compiler{}, spoke: &side{version: w.spoke.version}, hub: &side{version: w.hub.version}}
	ownMoved, otherMoved := moved.sides(w.ofHub)
	ownMoved.at, ownMoved.schema, otherMoved.schema = to.shown(w.ofHub), target, source
	w.found = append(w.found, moved.lacking(w.ofHub)...)
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
	case !isAlwaysSet(source, name) && !w.hasField(path, !w.ofHub):
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
	isComputed := slices.ContainsFunc(to.rule.fromNothing, func(field claim) bool { return field.ofHub == to.ofHub && field.is(to.spot) })
	if lacking := w.optionalSources(to); len(lacking) > 0 && !isComputed {
		return fmt.Sprintf("%s does not require %s, from which it comes", w.source.version, few(lacking))
	}
	if w.mayLeaveOut(to.rule, !w.ofHub) {
		return shortRule(to.rule.fldPath.String()) + " leaves it out where it cannot express the value"
	}
	return ""
}

// optionalSources returns the optional fields without which a rule sets nothing. Only if all
// sources of a format rule are optional does it return them.
func (w *requiredWalker) optionalSources(to *claim) []string {
	var lacking []string
	for _, from := range w.claimsOf(to.rule, !w.ofHub) {
		switch field := optional(from, *to); {
		case field != nil:
			lacking = append(lacking, field.String())
		case to.rule.Format != nil:
			return nil
		}
	}
	return lacking
}

// optional returns the first field on the path of a claim that an object of its side may lack, nil if it has
// all of them. A prefix that the claim of the other side shares exists on both sides or on neither.
func optional(from, to claim) conversion.Path {
	in := from.in
	shared, within := to.upTo(in)
	for !within {
		outer := in.around.in
		if _, within = to.upTo(outer); within {
			return in.name(from.ofHub)
		}
		in = outer
	}
	own, _ := in.sides(from.ofHub)
	current := own.schema
	for i, segment := range from.path {
		at := from.path[:i+1]
		isShared := len(shared.path) > i+1 && len(from.path) > i+1 && shared.path[:i+1].HasPrefix(at)
		if segment != conversion.Each && !isShared && !from.isText() && valuesOf(current) == nil && !isAlwaysSet(current, segment) && !in.hasField(at, from.ofHub) {
			return own.shown(at)
		}
		if from.isText() || segment != conversion.Each && valuesOf(current) != nil {
			return own.shown(from.path) // no one can require a label, or a key of a map
		}
		if current = childOf(current, segment); current == nil {
			return nil
		}
	}
	return nil
}
