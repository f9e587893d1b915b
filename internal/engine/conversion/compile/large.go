// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// The API server evaluates AdmissionCondition before it calls the webhook, so that only
// objects whose preserved data may exceed the size of annotations cost a request. Every
// object below these limits must fit, whatever its contents. Annotations take at most 4
// bytes per character.
const (
	// maxUncheckedAnnotations limits all annotations of an object, in characters: 128 KiB.
	maxUncheckedAnnotations = 32 << 10
	// maxUncheckedCount limits the number of annotations, so that adding up their sizes costs
	// little.
	maxUncheckedCount = 500
	// maxUncheckedTexts limits all texts without maxLength, in bytes, including their escapes.
	maxUncheckedTexts = 96 << 10
	// maxUncheckedOthers limits all other fields that may be preserved, in bytes.
	maxUncheckedOthers = 16 << 10
	// escapeSize is the maximum size of a character in an annotation, in bytes.
	escapeSize = 6
	// aroundField is the size of an annotation's syntax for a field, besides pointer and value.
	aroundField = 96
)

// unbounded is the size of a value that a schema does not limit.
const unbounded = math.MaxInt64

// MarkedCondition is a CEL expression that is true for every object whose annotations say that data
// was omitted. It is false for objects that users write.
var MarkedCondition = "request.operation == 'DELETE' ? " + isMarked("oldObject") + " : (" + isMarked("object") + ")"

// isMarked returns an expression that is true for an object with such an annotation, and for an
// object with too many annotations to examine.
func isMarked(object string) string {
	const template = `has(OBJECT.metadata.annotations) && (size(OBJECT.metadata.annotations) > COUNT || ` +
		`OBJECT.metadata.annotations.exists(k, k.startsWith('PREFIX') && OBJECT.metadata.annotations[k].contains('"omitted"')))`
	return strings.NewReplacer("OBJECT", object, "COUNT", strconv.Itoa(maxUncheckedCount), "PREFIX", conversion.PreservedPrefix).Replace(template)
}

// admissionCondition computes Result.AdmissionCondition from the sizes of versions.
func admissionCondition(group string, of map[string]*sizes) string {
	conditions := []string{largeAnnotations}
	preserves := false
	for _, version := range slices.Sorted(maps.Keys(of)) {
		preserves = preserves || of[version].found
		if large := of[version].condition(); large != "" {
			conditions = append(conditions, fmt.Sprintf("object.apiVersion == '%s/%s' && (%s)", group, version, large))
		}
	}
	if !preserves {
		return ""
	}
	return strings.Join(conditions, " || ")
}

// largeAnnotations is true for an object whose annotations may already be too large.
var largeAnnotations = fmt.Sprintf("has(object.metadata.annotations) && (size(object.metadata.annotations) > %d || "+
	"object.metadata.annotations.map(k, size(k) + size(object.metadata.annotations[k])).sum() > %d)", maxUncheckedCount, maxUncheckedAnnotations)

// sizes is the maximum size of the preserved data of a version.
type sizes struct {
	// found reports whether anything may be preserved.
	found bool
	// unbounded reports whether there is a field whose size no expression can compute.
	unbounded bool
	// bounded is the total size of all fields with a limit, in bytes.
	bounded int64
	// texts are expressions for texts without a limit, by JSON pointer.
	texts map[string]string
}

// condition returns an expression that is true for objects of the version that may be too large. It
// is empty if none can be.
func (s *sizes) condition() string {
	switch {
	case s.unbounded || s.bounded > maxUncheckedOthers:
		return "true"
	case len(s.texts) == 0:
		return ""
	}
	var large []string
	for _, place := range slices.Sorted(maps.Keys(s.texts)) {
		large = append(large, fmt.Sprintf("size(%s) > %d", s.texts[place], maxUncheckedTexts/escapeSize/len(s.texts)))
	}
	return strings.Join(large, " || ")
}

// addSizes adds what may be preserved of both versions.
func (c *compiler) addSizes(all map[string]*sizes) {
	for _, ofHub := range []bool{false, true} {
		root, otherRoot := c.root().sides(ofHub)
		s, others := sizesOf(root.version, all), sizesOf(otherRoot.version, all)
		s.found, s.bounded = s.found || c.small > 0, plus(s.bounded, c.small)
		for _, f := range c.frames {
			own, other := f.sides(ofHub)
			add := func(path conversion.Path) {
				s.field(own.shown(path), root.schema)
				list := untilEach(other.shown(path))
				if found, err := resolveIn(otherRoot.schema, list); err == nil && elementsOf(found) != nil && len(list) < len(other.shown(path)) {
					others.field(list, otherRoot.schema) // its elements may be known by what is in them
				}
			}
			for _, path := range slices.Concat(own.preserved, own.partlyPreserved) {
				add(path)
			}
			for _, claim := range own.claims {
				if !claim.rule.copies && !claim.rule.drops() && c.frameOf(claim.rule) == nil {
					add(claim.path)
				}
			}
			if f.rule != nil && (f.collection.SpokeForm != f.collection.HubForm || len(f.selections) > 0) {
				s.field(f.name(ofHub), root.schema)
			}
		}
	}
}

// sizesOf returns the sizes of a version.
func sizesOf(version string, all map[string]*sizes) *sizes {
	if all[version] == nil {
		all[version] = &sizes{texts: map[string]string{}}
	}
	return all[version]
}

// untilEach returns the part of a path that leads to the first list or map whose elements it goes through, or all of it.
func untilEach(path conversion.Path) conversion.Path {
	if i := slices.Index(path, conversion.Each); i >= 0 {
		return path[:i]
	}
	return path
}

// addSmall notes that something small may be preserved at a path of either version: that it is empty, or absent.
func (c *compiler) addSmall(path conversion.Path) {
	c.small = plus(c.small, int64(2*len(path.Pointer())+aroundField))
}

// field adds a field. A list or map counts as a whole, if the field is in its elements. Labels are short, and annotations have
// their own limit.
func (s *sizes) field(path conversion.Path, own *schema.Structural) {
	s.found = true
	if isText(path) {
		return
	}
	path = untilEach(path)
	of, _ := resolveIn(own, path)
	s.value(of, path, !nullableOn(own, path))
}

// value adds a value at a path. isFixed is true if nothing but a value of its type can be there.
func (s *sizes) value(of *schema.Structural, path conversion.Path, isFixed bool) {
	size, isText := strictSize(of)
	switch around := int64(2*len(path.Pointer()) + aroundField); {
	case size < unbounded:
		s.bounded = plus(s.bounded, plus(size, around))
	case isText && isFixed:
		s.bounded = plus(s.bounded, around)
		s.texts[path.Pointer()] = textExpression(path)
	default:
		s.unbounded = true
	}
}

// textExpression returns an expression for a text that may be absent.
func textExpression(path conversion.Path) string {
	var expression strings.Builder
	expression.WriteString("object")
	for _, name := range path {
		expression.WriteString("[?" + strconv.Quote(name) + "]")
	}
	return expression.String() + ".orValue('')"
}

// nullableOn reports whether a field, or an object above it, may have a value that its type does
// not say. An expression on such a field would fail.
func nullableOn(own *schema.Structural, path conversion.Path) bool {
	for i := range len(path) + 1 {
		at, err := resolveIn(own, path[:i])
		if err != nil || at.Nullable || at.XIntOrString || at.XEmbeddedResource {
			return true
		}
	}
	return false
}

// strictSize returns the maximum size of a value, in bytes, and whether it is a text. It assumes no limit that the schema does
// not have.
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
		return unbounded // its keys have no maximum length
	}
	for name, property := range s.Properties {
		one, _ := strictSize(&property)
		size = plus(size, plus(one, int64(len(name)*escapeSize+aroundField)))
	}
	return size
}

func plus(a, b int64) int64 {
	if a > unbounded-b {
		return unbounded
	}
	return a + b
}

func times(a, b int64) int64 {
	if b > 0 && a > unbounded/b {
		return unbounded
	}
	return a * b
}
