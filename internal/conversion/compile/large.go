// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// Admission is asked about objects that can have more to preserve than annotations
// have room for, and costs nothing for all others: the API server evaluates an
// expression first. What it does not ask about must have room whatever it holds.
// Annotations take at most 4 bytes for each character.
const (
	// quietAnnotations bounds all annotations of an object, in characters: 128 KiB.
	quietAnnotations = 32 << 10
	// quietCount bounds their number, so that to add them up costs little.
	quietCount = 500
	// quietTexts bounds all texts of unbounded length, in bytes, which are escaped.
	quietTexts = 96 << 10
	// quietOthers bounds all other fields that may be preserved, in bytes.
	quietOthers = 16 << 10
	// escapeSize is the most that a character takes in an annotation, in bytes.
	escapeSize = 6
	// aroundField is what an annotation has for a field besides pointer and value.
	aroundField = 96
)

// MarkedCondition is a CEL expression that is true for each object that says that it
// was truncated, and for none that people write.
var MarkedCondition = "request.operation == 'DELETE' ? " + isMarked("oldObject") + " : (" + isMarked("object") + ")"

// isMarked is true for an object with an annotation that says that it was truncated,
// and for one with more annotations than it is worth to look at.
func isMarked(object string) string {
	const template = `has(OBJECT.metadata.annotations) && (size(OBJECT.metadata.annotations) > COUNT || ` +
		`OBJECT.metadata.annotations.exists(k, k.startsWith('PREFIX') && OBJECT.metadata.annotations[k].contains('"omitted"')))`
	return strings.NewReplacer("OBJECT", object, "COUNT", strconv.Itoa(quietCount), "PREFIX", conversion.PreservedPrefix).Replace(template)
}

// admissionCondition is a CEL expression that is true for each object, at any of the
// versions, that may have more to preserve than its annotations have room for. It is
// empty where nothing is preserved.
func (r *Result) admissionCondition(schemas map[string]*schema.Structural) string {
	found := map[string]*sizes{}
	for i := range r.Ruleset.Spokes {
		spoke := &r.Ruleset.Spokes[i]
		for _, version := range []string{spoke.Version, r.Ruleset.Hub} {
			if found[version] == nil {
				found[version] = &sizes{texts: map[string]string{}}
			}
			found[version].scope(&spoke.Root, version == r.Ruleset.Hub, schemas[version])
		}
	}
	conditions := []string{largeAnnotations}
	preserves := false
	for _, version := range slices.Sorted(maps.Keys(found)) {
		preserves = preserves || found[version].any
		if large := found[version].condition(); large != "" {
			conditions = append(conditions, fmt.Sprintf("object.apiVersion == '%s/%s' && (%s)", r.Ruleset.Group, version, large))
		}
	}
	if !preserves {
		return ""
	}
	return strings.Join(conditions, " || ")
}

// largeAnnotations is true for an object whose annotations may be too large already.
var largeAnnotations = fmt.Sprintf("has(object.metadata.annotations) && (size(object.metadata.annotations) > %d || "+
	"object.metadata.annotations.map(k, size(k) + size(object.metadata.annotations[k])).sum() > %d)", quietCount, quietAnnotations)

// sizes is how large what is preserved of a version may be.
type sizes struct {
	// any tells that there is anything.
	any bool
	// unbounded tells of a field about whose size no expression is made.
	unbounded bool
	// bounded is the size of all fields that a schema bounds, in bytes.
	bounded int64
	// texts are expressions of texts that a schema does not bound, by their places.
	texts map[string]string
}

// condition is true for objects of the version that may be large, empty where none can be.
func (s *sizes) condition() string {
	switch {
	case s.unbounded || s.bounded > quietOthers:
		return "true"
	case len(s.texts) == 0:
		return ""
	}
	var large []string
	for _, place := range slices.Sorted(maps.Keys(s.texts)) {
		large = append(large, fmt.Sprintf("size(%s) > %d", s.texts[place], quietTexts/escapeSize/len(s.texts)))
	}
	return strings.Join(large, " || ")
}

// scope adds the fields of one side that may be preserved.
func (s *sizes) scope(of *conversion.Scope, ofHub bool, own *schema.Structural) {
	only := of.OnlySpoke
	if ofHub {
		only = of.OnlyHub
	}
	for _, leaf := range only {
		if leaf.Known != nil {
			s.any, s.unbounded = true, true
			continue
		}
		s.field(leaf.Path, own)
	}
	for i := range of.Exchanges {
		fields := of.Exchanges[i].Spoke
		if ofHub {
			fields = of.Exchanges[i].Hub
		}
		for _, f := range fields {
			s.field(f.Path, own)
		}
	}
	for _, d := range of.Defaults {
		s.any = true
		s.bounded = plus(s.bounded, int64(2*len(d.Path.Pointer())+len(d.Value)+aroundField))
		if d.Hub == ofHub {
			s.field(d.Path, own)
		}
	}
	for i := range of.Shared {
		s.bounded = plus(s.bounded, int64(len(of.Shared[i].Path.Pointer())+aroundField))
	}
	for i := range of.Collections {
		s.collection(&of.Collections[i], ofHub, own)
	}
}

// collection adds the elements of a list or map. No expression adds them up.
func (s *sizes) collection(of *conversion.Collection, ofHub bool, own *schema.Structural) {
	element, at := sizes{texts: map[string]string{}}, structuralAt(own, append(slices.Clone(of.Path), conversion.Each))
	element.scope(&of.Scope, ofHub, at)
	other := sizes{texts: map[string]string{}}
	other.scope(&of.Scope, !ofHub, nil)
	if !element.any && !other.any {
		return
	}
	s.any = true
	held := structuralAt(own, of.Path)
	if held == nil || of.Map || element.unbounded || len(element.texts) > 0 || validationOf(held).MaxItems == nil {
		s.unbounded = true
		return
	}
	size := element.bounded
	if len(of.Keys) == 0 {
		size, _ = strictSize(at) // elements without keys are preserved whole
	} else if keys, all := keysSize(at, of.Keys); all {
		size = plus(size, keys)
	} else {
		size = unbounded
	}
	s.bounded = plus(s.bounded, times(plus(size, int64(len(of.Path.Pointer())+aroundField)), *validationOf(held).MaxItems))
}

// keysSize is what the keys of an element may take, once in each of its pointers.
func keysSize(element *schema.Structural, keys []string) (size int64, bounded bool) {
	for _, key := range keys {
		one, _ := strictSize(structuralAt(element, conversion.Path{key}))
		size = plus(size, times(one, 2*escapeSize))
	}
	return size, size < unbounded
}

// field adds a field outside of lists and maps. Labels are short, and annotations are
// counted as such.
func (s *sizes) field(path conversion.Path, own *schema.Structural) {
	s.any = true
	if len(path) > 0 && path[0] == "metadata" {
		return
	}
	size, isText := strictSize(structuralAt(own, path))
	switch around := int64(2*len(path.Pointer()) + aroundField); {
	case size < unbounded:
		s.bounded = plus(s.bounded, plus(size, around))
	case isText && !nullableOn(own, path):
		s.bounded = plus(s.bounded, around)
		s.texts[path.Pointer()] = textExpression(path)
	default:
		s.unbounded = true
	}
}

// textExpression reads a text that may be absent.
func textExpression(path conversion.Path) string {
	var expression strings.Builder
	expression.WriteString("object")
	for _, name := range path {
		expression.WriteString("[?" + strconv.Quote(name) + "]")
	}
	return expression.String() + ".orValue('')"
}

// structuralAt is the schema of a field, nil where there is none.
func structuralAt(own *schema.Structural, path conversion.Path) *schema.Structural {
	for _, segment := range path {
		if own == nil {
			return nil
		}
		own = step(own, segment)
	}
	return own
}

// nullableOn reports whether a field, or an object above it, may be something else
// than its type says: an expression on it would fail.
func nullableOn(own *schema.Structural, path conversion.Path) bool {
	for i := range len(path) + 1 {
		at := structuralAt(own, path[:i])
		if at == nil || at.Nullable || at.XIntOrString || at.XEmbeddedResource {
			return true
		}
	}
	return false
}

// strictSize is how large a value of a schema may be, in bytes, and whether it is a
// text. Unlike largest it takes nothing for granted that the schema does not say.
func strictSize(s *schema.Structural) (size int64, isText bool) {
	const number = 32
	if s == nil || s.XPreserveUnknownFields || s.XEmbeddedResource || s.XIntOrString {
		return unbounded, false
	}
	v := validationOf(s)
	switch s.Type {
	case "boolean", "integer", "number":
		return number, false
	case "string":
		return strictText(v), true
	case "array":
		if s.Items == nil || v.MaxItems == nil {
			return unbounded, false
		}
		one, _ := strictSize(s.Items)
		return times(plus(one, 1), *v.MaxItems), false
	case "object":
		return strictObject(s), false
	}
	return unbounded, false
}

func strictText(v schema.ValueValidation) int64 {
	longest := int64(0)
	for _, value := range v.Enum {
		if text, isText := value.Object.(string); isText {
			longest = max(longest, int64(len(text)))
		}
	}
	switch {
	case len(v.Enum) > 0:
		return times(longest+1, escapeSize)
	case v.MaxLength != nil:
		return times(*v.MaxLength+1, escapeSize)
	}
	return unbounded
}

func strictObject(s *schema.Structural) (size int64) {
	if s.AdditionalProperties != nil {
		return unbounded // its keys may have any length
	}
	for name, property := range s.Properties {
		one, _ := strictSize(&property)
		size = plus(size, plus(one, int64(len(name)*escapeSize+aroundField)))
	}
	return size
}
