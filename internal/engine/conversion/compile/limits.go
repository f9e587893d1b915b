// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// warnLimits names the fields that one side requires and an object from the other side may lack, and those of which it allows
// less. The API server does not validate the result of a conversion, so such an object can be read, and its next write is
// refused. This includes fields that are dropped or preserved: an object that was created on the other side never had them.
func (c *compiler) warnLimits() {
	for _, ofHub := range []bool{true, false} {
		var required, limits []string
		for _, f := range c.frames {
			w := f.limits(ofHub)
			required, limits = append(required, w.required...), append(limits, w.limits...)
		}
		target, source := c.root().sides(ofHub)
		if len(required) > 0 {
			c.warn("%s requires what an object from %s may lack: %s: such an object can be read at %s, and not be written there until it is set: give the field a default in the schema of %s, or by a rule",
				target.version, source.version, few(required), target.version, target.version)
		}
		if len(limits) > 0 {
			c.warn("%s allows less than %s: %s: an object from %s that goes beyond can be read at %s, and not be written there: let the schema of %s allow as much",
				target.version, source.version, few(limits), source.version, target.version, target.version)
		}
	}
}

// limits compares what both sides of a frame allow.
func (f *frame) limits(ofHub bool) *limitWalker {
	w := &limitWalker{frame: f, ofHub: ofHub}
	w.target, w.source = f.sides(ofHub)
	w.value(w.target.schema, w.source.schema, nil)
	return w
}

// limitWalker walks the schema of the target, beside the schema of the source.
type limitWalker struct {
	*frame
	target, source *side
	ofHub          bool
	// isMoved is true for what a rule moves as a whole, with its nulls.
	isMoved bool
	// required and limits are the findings, each with its field.
	required, limits []string
}

// value examines a field. The field of the same name at the source may be another field, or none. A field that is preserved as
// a whole also comes back as a whole.
func (w *limitWalker) value(target, source *schema.Structural, at conversion.Path) {
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
	if source != nil && !contains(w.source.preserved, at) {
		w.compare(target, source, at)
	}
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

// compare notes what the target allows less than the source.
func (w *limitWalker) compare(target, source *schema.Structural, at conversion.Path) {
	if typeName(target) != typeName(source) {
		return
	}
	limits := stricter(w.selected(source, at, !w.ofHub), target, w.source.version)
	if w.isMoved && losesNull(source, target) {
		limits = append(limits, "no null ("+w.source.version+": null, which API servers remove)")
	}
	for _, limit := range limits {
		w.limits = append(w.limits, pathText(w.target.shown(at))+" has "+limit)
	}
}

// object examines the required fields of an object, and then its fields. The source is nil if it has no such object.
func (w *limitWalker) object(target, source *schema.Structural, at conversion.Path) {
	for _, name := range slices.Sorted(maps.Keys(target.Properties)) {
		if w.target.isEnvelope(at, name) {
			continue
		}
		property, path := target.Properties[name], append(slices.Clip(at), name)
		var other *schema.Structural
		if source != nil {
			if found, there := source.Properties[name]; there {
				other = &found
			}
		}
		if slices.Contains(validationOf(target).Required, name) && property.Default.Object == nil {
			if cause := w.cause(path, source, other); cause != "" {
				w.required = append(w.required, w.target.shown(path).String()+" ("+cause+")")
			}
		}
		w.value(&property, other, path)
	}
}

// ruled examines what a rule moves as a whole, and lists and maps that it pairs. It ignores what a rule computes.
func (w *limitWalker) ruled(target *schema.Structural, to *claim) {
	source := w.schemaOf(to.rule, !w.ofHub)
	if source == nil || to.rule.Move == nil && to.rule.Each == nil {
		return
	}
	if f := w.frameOf(to.rule); f != nil {
		if f.ofElements() && f.collection.SpokeForm == f.collection.HubForm {
			w.compare(target, source, to.path) // what is in it is a frame
		}
		return
	}
	moved := &limitWalker{frame: &frame{compiler: &compiler{}}, target: &side{version: w.target.version, at: to.shown(w.ofHub)}, source: &side{version: w.source.version}, ofHub: w.ofHub, isMoved: true}
	moved.value(target, source, nil)
	w.required, w.limits = append(w.required, moved.required...), append(w.limits, moved.limits...)
}

// cause returns why a required field may be missing. It is empty if the field is always set. Other is the field of the source.
func (w *limitWalker) cause(path conversion.Path, source, other *schema.Structural) string {
	claims := w.target.claims
	claim := claimOf(claims, path)
	switch {
	case claim != nil:
		return w.ruleCause(claim)
	case hasClaimBelow(claims, path):
		return "" // rules that set fields in it create it
	case other == nil, contains(w.target.preserved, path):
		return w.source.version + " does not have it"
	case !isAlwaysSet(source, path[len(path)-1]) && !w.hasField(path, !w.ofHub):
		return w.source.version + " does not require it"
	}
	return ""
}

// isAlwaysSet reports whether a field of an object is required or has a default.
func isAlwaysSet(s *schema.Structural, name string) bool {
	return slices.Contains(validationOf(s).Required, name) || s.Properties[name].Default.Object != nil
}

// ruleCause returns why the rule that sets a field may have nothing to set it from. The verdict says which values it cannot
// express.
func (w *limitWalker) ruleCause(to *claim) string {
	switch {
	case to.rule.Drop != nil:
		return shortRule(to.rule.fldPath.String()) + " drops it"
	case to.rule.Default != nil, to.rule.CEL != nil && to.rule.CEL.WhenMissing == v1alpha1.CELEvaluate:
		return ""
	}
	if lacking := w.optionalSources(to); len(lacking) > 0 {
		return fmt.Sprintf("%s does not require %s, from which it comes", w.source.version, few(lacking))
	}
	return ""
}

// optionalSources returns the optional fields without which a rule sets nothing. Only if all
// sources of a format rule are optional does it return them.
func (w *limitWalker) optionalSources(to *claim) []string {
	var lacking []string
	for _, from := range w.claimsOf(to.rule, !w.ofHub) {
		switch field := w.optional(from, *to); {
		case field != nil:
			lacking = append(lacking, field.String())
		case to.rule.Format != nil:
			return nil
		}
	}
	return lacking
}

// optional returns the first field on the path of a claim that an object of its side may lack, nil if it has
// all of them. What is also around the claim of the other side exists on both sides or on neither.
func (c *compiler) optional(from, to claim) conversion.Path {
	path, other := from.shown(from.ofHub), to.shown(from.ofHub)
	own, _ := from.in.sides(from.ofHub)
	root, _ := c.root().sides(from.ofHub)
	current := root.schema
	for i, segment := range path {
		at := path[:i+1]
		isAround := len(path) > i+1 && len(other) > i+1 && other.HasPrefix(at)
		switch {
		case from.isText() || !isAround && segment != conversion.Each && valuesOf(current) != nil:
			return path // no one can require a label, or a key of a map
		case isAround, segment == conversion.Each, isAlwaysSet(current, segment):
		case len(at) <= len(own.at) || !from.in.hasField(at[len(own.at):], from.ofHub):
			return at
		}
		if current = childOf(current, segment); current == nil {
			return nil
		}
	}
	return nil
}

// stricter returns the limits of a target that the source lacks or has wider.
func stricter(source, target *schema.Structural, version string) (limits []string) {
	if reflect.DeepEqual(source.ValueValidation, target.ValueValidation) && reflect.DeepEqual(source.Extensions, target.Extensions) &&
		reflect.DeepEqual(source.ValidationExtensions, target.ValidationExtensions) {
		return nil
	}
	of, others := keywords(target), keywords(source)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if name != "required" && !isWithin(name, others, of) {
			limits = append(limits, fmt.Sprintf("%s %s (%s: %s)", name, shortJSON(of[name]), version, shortJSON(others[name])))
		}
	}
	return limits
}

// keywords returns what a schema says of a value, without its type and its content.
func keywords(s *schema.Structural) (all map[string]any) {
	of := &schema.Structural{ValueValidation: s.ValueValidation}
	of.XListType, of.XListMapKeys = s.XListType, s.XListMapKeys
	text, err := of.ToKubeOpenAPI().MarshalJSON()
	if err == nil {
		_ = json.Unmarshal(text, &all) // a schema has a JSON form
	}
	var rules []any
	for _, validation := range s.XValidations {
		rules = append(rules, validation.Rule)
	}
	if rules != nil {
		all["x-kubernetes-validations"] = rules
	}
	return all
}

// isWithin reports whether a limit of the target allows all that the source allows by its own.
func isWithin(name string, source, target map[string]any) bool {
	limit, was := target[name], source[name]
	number, _ := limit.(float64)
	before, isNumber := was.(float64)
	switch bound, isExclusive := strings.CutPrefix(name, "exclusive"); {
	case reflect.DeepEqual(was, limit), name == "x-kubernetes-list-type" && limit == "atomic":
		return true
	case isExclusive:
		bound = strings.ToLower(bound)
		return source[bound] != target[bound] && isWithin(bound, source, target)
	case name == "minLength" || name == "minItems" || name == "minProperties":
		return before >= number // none is 0
	case strings.HasPrefix(name, "min"):
		return isNumber && before >= number
	case strings.HasPrefix(name, "max"):
		return isNumber && before <= number
	case name == "enum":
		return was != nil && containsAll(limit, was)
	}
	return name == "x-kubernetes-validations" && containsAll(was, limit)
}

// containsAll reports whether a list in JSON has all elements of another one.
func containsAll(list, other any) bool {
	elements, _ := list.([]any)
	others, _ := other.([]any)
	return !slices.ContainsFunc(others, func(element any) bool {
		return !slices.ContainsFunc(elements, func(e any) bool { return reflect.DeepEqual(e, element) })
	})
}

// maxText limits how much of a limit a message quotes, in bytes.
const maxText = 60

// shortJSON returns a limit as messages quote it.
func shortJSON(limit any) string {
	text := preserved.Encode(limit)
	switch {
	case limit == nil:
		return "none"
	case len(text) > maxText:
		return strings.ToValidUTF8(string(text[:maxText]), "") + "..."
	}
	return string(text)
}

func validationOf(s *schema.Structural) schema.ValueValidation {
	if s.ValueValidation == nil {
		return schema.ValueValidation{}
	}
	return *s.ValueValidation
}
