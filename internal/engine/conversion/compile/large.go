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
	// maxUncheckedTexts limits all texts that may be preserved, in characters, each of which an annotation may write as 6 bytes:
	// 96 KiB.
	maxUncheckedTexts = 16 << 10
	// maxUncheckedFields limits the number of such texts, so that the expression stays short.
	maxUncheckedFields = 100
	// maxUncheckedOthers limits all that annotations have besides texts, in bytes.
	maxUncheckedOthers = 16 << 10
	// fieldSize is the size of a field in an annotation, in bytes, without its pointer and without a text: a number has less
	// than 32.
	fieldSize = 128
)

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
	// others is the total size of all that is no text, in bytes.
	others int
	// texts are expressions for texts, by JSON pointer.
	texts map[string]string
}

// condition returns an expression that is true for objects of the version that may be too large. It
// is empty if none can be.
func (s *sizes) condition() string {
	switch {
	case s.unbounded || s.others > maxUncheckedOthers || len(s.texts) > maxUncheckedFields:
		return "true"
	case len(s.texts) == 0:
		return ""
	}
	var all []string
	for _, place := range slices.Sorted(maps.Keys(s.texts)) {
		all = append(all, "size("+s.texts[place]+")")
	}
	return fmt.Sprintf("%s > %d", strings.Join(all, " + "), maxUncheckedTexts)
}

// addSizes adds what may be preserved of both versions.
func (c *compiler) addSizes(all map[string]*sizes) {
	for _, ofHub := range []bool{false, true} {
		root, otherRoot := c.root().sides(ofHub)
		s, others := sizesOf(root.version, all), sizesOf(otherRoot.version, all)
		s.found, s.others = s.found || c.small > 0, s.others+c.small
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
func (c *compiler) addSmall(path conversion.Path) { c.small += sizeAround(path) }

// sizeAround returns the size of a field in an annotation, with its pointer.
func sizeAround(path conversion.Path) int { return 2*len(path.Pointer()) + fieldSize }

// field adds a field. A list or map counts as a whole, if the field is in its elements. Labels are short, and annotations have
// their own limit.
func (s *sizes) field(path conversion.Path, root *schema.Structural) {
	s.found = true
	if isText(path) {
		return
	}
	of, isFixed := root, true
	path = untilEach(path)
	for _, segment := range path {
		if isFixed = isFixed && hasFixedType(of); of == nil {
			break
		}
		of = childOf(of, segment)
	}
	s.value(of, path, isFixed)
}

// value adds a value at a path. isFixed is true if nothing but objects can be around it: an expression would fail on any other
// value.
func (s *sizes) value(of *schema.Structural, path conversion.Path, isFixed bool) {
	isFixed = isFixed && hasFixedType(of)
	switch {
	case of != nil && slices.Contains([]string{"boolean", "integer", "number"}, of.Type):
		s.others += sizeAround(path)
	case isFixed && of.Type == "string":
		s.others += sizeAround(path)
		s.texts[path.Pointer()] = textExpression(path)
	case isFixed && isStruct(of) && !holdsAnything(of):
		s.others += sizeAround(path)
		for name, property := range of.Properties {
			s.value(&property, append(slices.Clip(path), name), true)
		}
	default:
		s.unbounded = true
	}
}

// hasFixedType reports whether a field can have no value but one of the type of its schema.
func hasFixedType(s *schema.Structural) bool {
	return s != nil && !s.Nullable && !s.XIntOrString && !s.XEmbeddedResource
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
