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
		preserves = preserves || of[version].preserves()
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

// sizes is what may be preserved of a version.
type sizes struct {
	// unbounded reports whether there is a field whose size no expression can compute.
	unbounded bool
	// small is the size of what is besides fields, in bytes.
	small int
	// fields are the others by their JSON pointers, texts with an expression for them.
	fields map[string]string
}

// preserves reports whether anything may be preserved.
func (s *sizes) preserves() bool { return s.unbounded || s.small > 0 || len(s.fields) > 0 }

// condition returns an expression that is true for objects of the version that may be too large. It
// is empty if none can be.
func (s *sizes) condition() string {
	var texts []string
	others := s.small
	for _, at := range slices.Sorted(maps.Keys(s.fields)) {
		others += sizeAround(at)
		if text := s.fields[at]; text != "" {
			texts = append(texts, "size("+text+")")
		}
	}
	switch {
	case s.unbounded || others > maxUncheckedOthers || len(texts) > maxUncheckedFields:
		return "true"
	case len(texts) == 0:
		return ""
	}
	return fmt.Sprintf("%s > %d", strings.Join(texts, " + "), maxUncheckedTexts)
}

// addSizes adds what may be preserved of both versions, by the verdicts on their leaf fields.
func (c *compiler) addSizes(all map[string]*sizes, leaves []FieldVerdict) {
	root := c.root()
	for _, of := range []*side{root.spoke, root.hub} {
		s := sizesOf(of.version, all)
		s.small += c.small
		s.unbounded = s.unbounded || len(c.recursions) > 0 // a verdict is about the first level
	}
	for _, leaf := range leaves {
		path, err := conversion.ParsePath(leaf.Path)
		if err != nil || leaf.Owner == OwnerDropped || leaf.Owner == OwnerExact && !leaf.PartlyPreserved {
			continue
		}
		ofHub := leaf.Version == root.hub.version
		own, other := root.sides(ofHub)
		sizesOf(own.version, all).field(path, own.schema)
		there := c.locate(path, ofHub).shown(!ofHub)
		if list := untilElements(there); len(list) < len(there) {
			sizesOf(other.version, all).field(list, other.schema) // its elements may be known by what is in them
		}
	}
}

// sizesOf returns the sizes of a version.
func sizesOf(version string, all map[string]*sizes) *sizes {
	if all[version] == nil {
		all[version] = &sizes{fields: map[string]string{}}
	}
	return all[version]
}

// untilElements returns the part of a path that leads to the first list or map whose elements it goes through, or all of it.
func untilElements(path conversion.Path) conversion.Path {
	isElement := func(segment string) bool { return segment == conversion.Each || conversion.IsSelector(segment) }
	if i := slices.IndexFunc(path, isElement); i >= 0 {
		return path[:i]
	}
	return path
}

// addSmall notes that something small may be preserved at a path of either version: that it is empty, null, or absent.
func (c *compiler) addSmall(path conversion.Path) { c.small += sizeAround(path.Pointer()) }

// sizeAround returns the size of a field in an annotation, with its pointer.
func sizeAround(pointer string) int { return 2*len(pointer) + fieldSize }

// field adds a leaf field. A list or map counts as a whole, if the field is in its elements. Labels are short, and annotations
// have their own limit.
func (s *sizes) field(path conversion.Path, of *schema.Structural) {
	path = untilElements(path)
	isFixed := of.Type == "object"
	for _, segment := range path {
		if isText(path) || of == nil {
			break
		}
		of = childOf(of, segment)
		isFixed = isFixed && hasFixedType(of)
	}
	switch {
	case isText(path), of != nil && slices.Contains([]string{"boolean", "integer", "number"}, of.Type):
		s.fields[path.Pointer()] = ""
	case isFixed && of.Type == "string":
		s.fields[path.Pointer()] = textExpression(path)
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
