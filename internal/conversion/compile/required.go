// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// warnRequired names the fields that one side requires and an object from the
// other side may lack: it can be read then, and not be written back unchanged.
// That counts for a field that is dropped, or preserved, too: what was created
// on the other side has none.
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

// requiredWalker goes through the schema of the target, with what the source has
// at the same place.
type requiredWalker struct {
	c              *compiler
	target, source side
	ofHub          bool
	lacking        []string
}

// object judges an object's required fields, and goes on into its fields. The
// source is nil where it has no such object.
func (w *requiredWalker) object(target, source *schema.Structural, at conversion.Path) {
	for _, name := range validationOf(target).Required {
		property := target.Properties[name]
		path := append(slices.Clip(at), name)
		if property.Default.Object != nil || len(at) == 0 && conversion.IsEnvelope(name) {
			continue
		}
		if cause := w.cause(path, name, source); cause != "" {
			w.lacking = append(w.lacking, path.String()+" ("+cause+")")
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

// value goes into a field. What the source has by that name may be another. One that is preserved as a whole comes back as a whole.
func (w *requiredWalker) value(target, source *schema.Structural, at conversion.Path) {
	if slices.ContainsFunc(w.c.preserved(w.ofHub), func(path conversion.Path) bool { return slices.Equal(path, at) }) {
		return
	}
	if claim := claimOf(*w.target.claims, at); claim != nil {
		w.moved(target, claim)
		return
	}
	if exactly(*w.source.claims, at) {
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

// moved goes on with what a rule moves here, and with nothing that a rule computes.
func (w *requiredWalker) moved(target *schema.Structural, to *claim) {
	from := w.c.partner(*to, *w.source.claims)
	if to.rule.Move == nil || from == nil {
		return
	}
	source, err := resolve(w.source.schema, from.path)
	if err != nil {
		return
	}
	apart := &compiler{spokeVersion: w.c.spokeVersion, hubVersion: w.c.hubVersion}
	below := &requiredWalker{c: apart, target: side{w.target.version, target, new([]claim)}, source: side{w.source.version, source, new([]claim)}, ofHub: w.ofHub}
	below.inside(target, source, to.path)
	w.lacking = append(w.lacking, below.lacking...)
}

// cause is why a required field may be lacking, and empty where it is not.
func (w *requiredWalker) cause(path conversion.Path, name string, source *schema.Structural) string {
	claims := *w.target.claims
	claim := claimOf(claims, path)
	other := fieldOf(source, name)
	switch {
	case claim != nil:
		return w.causeInRule(claim)
	case inside(claims, path):
		return "" // it is there where rules fill something in it
	case other == nil, slices.ContainsFunc(w.c.preserved(w.ofHub), func(kept conversion.Path) bool { return slices.Equal(kept, path) }):
		return w.source.version + " does not have it"
	case !alwaysThere(source, name):
		return w.source.version + " does not require it"
	}
	return ""
}

// alwaysThere reports whether an object has a field: it is required, or defaulted.
func alwaysThere(s *schema.Structural, name string) bool {
	return slices.Contains(validationOf(s).Required, name) || s.Properties[name].Default.Object != nil
}

// causeInRule is why the rule that fills a field may leave it out.
func (w *requiredWalker) causeInRule(to *claim) string {
	switch {
	case to.rule.Drop != nil:
		return shortRule(to.rule.at.String()) + " drops it"
	case to.rule.Default != nil:
		return ""
	}
	if lacking := w.optionalSources(to); len(lacking) > 0 {
		return fmt.Sprintf("%s does not require %s, from which it comes", w.source.version, few(lacking))
	}
	if w.c.mayLeaveOut(to.rule, !w.ofHub) {
		return shortRule(to.rule.at.String()) + " leaves it out where it cannot express the value"
	}
	return ""
}

// optionalSources are the fields without which a rule fills nothing: all of them,
// where one is enough.
func (w *requiredWalker) optionalSources(to *claim) []string {
	var lacking []string
	for _, from := range *w.source.claims {
		if from.rule != to.rule {
			continue
		}
		switch field := w.optional(from.path, to.path); {
		case field != nil:
			lacking = append(lacking, field.String())
		case to.rule.Format != nil:
			return nil
		}
	}
	return lacking
}

// optional is the first field on the way to a path that an object of the source
// may lack, or nil. The way that both paths share is there, or is not, on both sides.
func (w *requiredWalker) optional(path, other conversion.Path) conversion.Path {
	at := w.source.schema
	for i, segment := range path {
		shared := len(other) > i+1 && len(path) > i+1 && path.HasPrefix(other[:i+1])
		if segment != conversion.Each && !shared && path[0] != "metadata" && valuesOf(at) == nil && !alwaysThere(at, segment) {
			return path[:i+1]
		}
		if path[0] == "metadata" || segment != conversion.Each && valuesOf(at) != nil {
			return path // no one can require a label, or a key of a map
		}
		if at = step(at, segment); at == nil {
			return nil
		}
	}
	return nil
}
