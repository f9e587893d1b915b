// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

const (
	// runeSize is the maximum size of a character, in bytes.
	runeSize = 4
	// usualText is the assumed size of a text without maxLength, in bytes. Most schemas do not
	// limit texts, and most texts are short.
	usualText = 256
	// largeField is the size of a field that is worth mentioning, in bytes.
	largeField = 64 << 10
)

// unbounded is the size of a value that a schema does not limit.
const unbounded = math.MaxInt64

// warnPreservedSize names the preserved fields that may exceed the size of an object's annotations.
func (c *compiler) warnPreservedSize(overflow v1alpha1.OverflowAction) {
	for _, ofHub := range []bool{false, true} {
		root, other := c.root().sides(ofHub)
		var fields []string
		total := int64(0)
		for _, f := range c.frames {
			own, _ := f.sides(ofHub)
			for _, path := range own.preserved {
				if own.isText(path) || contains(own.partlyPreserved, path) {
					continue // an annotation already, a small label, or rarely preserved
				}
				size, cause := preservedSize(root.schema, own.shown(path))
				if total = plus(total, size); size > largeField {
					fields = append(fields, own.shown(path).String()+" ("+cause+")")
				}
			}
		}
		if total <= conversion.MaxAnnotations || len(fields) == 0 {
			continue
		}
		consequence := "the object cannot be converted: bound the fields in the schema, give them a place in the other version, or set overflow: Drop"
		if overflow == v1alpha1.OverflowDrop {
			consequence = "the largest of them is given up"
		}
		c.warn("what is preserved of %s at %s may exceed the 256 KiB that all annotations of an object may take: %s: beyond that %s",
			root.version, other.version, few(fields), consequence)
	}
}

// preservedSize returns the maximum size of a field, in bytes, and its cause. Elements of lists
// count as often as maxItems allows.
func preservedSize(root *schema.Structural, path conversion.Path) (size int64, cause string) {
	current, count := root, int64(1)
	for _, segment := range path {
		if segment == conversion.Each && current.Items != nil {
			if v := validationOf(current); v.MaxItems != nil {
				count = times(count, *v.MaxItems)
			}
		}
		next := childOf(current, segment)
		if next == nil {
			return unbounded, "what its schema does not name"
		}
		current = next
	}
	size, cause = largest(current)
	return times(size, count), cause
}

// largest returns the maximum size of a value, in bytes, and its cause.
func largest(s *schema.Structural) (size int64, cause string) {
	v := validationOf(s)
	switch {
	case s.XPreserveUnknownFields || s.XEmbeddedResource || s.AdditionalProperties != nil && s.AdditionalProperties.Structural == nil:
		return unbounded, "anything"
	case s.Items != nil:
		return largestOfMany(s.Items, v.MaxItems, "maxItems")
	case s.AdditionalProperties != nil:
		return largestOfMany(s.AdditionalProperties.Structural, v.MaxProperties, "maxProperties")
	case s.Type == "object":
		return largestObject(s)
	case s.Type == "string" && len(v.Enum) == 0 && v.MaxLength != nil:
		return times(*v.MaxLength, runeSize), fmt.Sprintf("maxLength %d", *v.MaxLength)
	}
	return usualText, "a text"
}

func largestOfMany(s *schema.Structural, most *int64, limit string) (size int64, cause string) {
	if most == nil {
		return unbounded, "no " + limit
	}
	one, _ := largest(s)
	return times(one, *most), fmt.Sprintf("%s %d", limit, *most)
}

func largestObject(s *schema.Structural) (size int64, cause string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		one, why := largest(&property)
		if size = plus(size, plus(one, int64(len(name)))); one == unbounded && cause == "" {
			cause = why + " in it"
		}
	}
	if cause == "" {
		cause = fmt.Sprintf("up to %d KiB", size>>10)
	}
	return size, cause
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
