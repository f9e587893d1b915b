// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"math"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

const (
	// runeSize is the most that a character takes, in bytes.
	runeSize = 4
	// usualText stands for a text without a maxLength, in bytes. Hardly a schema
	// bounds its texts, and hardly a text is long.
	usualText = 256
	// largeField is a part of maxAnnotations that is worth a word, in bytes.
	largeField = 64 << 10
)

// unbounded is the size of what a schema does not bound.
const unbounded = math.MaxInt64

// warnPreservedSize names the fields that are preserved and may be too large for an
// object's annotations.
func (c *compiler) warnPreservedSize(overflow v1alpha1.OverflowAction) {
	for _, ofHub := range []bool{false, true} {
		own, other := c.sides(ofHub)
		var fields []string
		total := int64(0)
		for _, path := range c.preserved(ofHub) {
			if path[0] == "metadata" || c.isPartlyPreserved(path, ofHub) {
				continue // it is an annotation before, too, or as small as a label; or hardly ever kept
			}
			size, cause := preservedSize(own.schema, path)
			if total = plus(total, size); size > largeField {
				fields = append(fields, path.String()+" ("+cause+")")
			}
		}
		if total <= conversion.MaxAnnotations || len(fields) == 0 {
			continue
		}
		does := "the object cannot be converted: bound the fields in the schema, give them a place in the other version, or set overflow: Drop"
		if overflow == v1alpha1.OverflowDrop {
			does = "the largest of them is given up"
		}
		c.warn("what is preserved of %s at %s may exceed the 256 KiB that all annotations of an object may take: %s: beyond that %s",
			own.version, other.version, few(fields), does)
	}
}

// preservedSize is how large a field may be, in bytes, and what makes it so large.
// Elements of lists and maps count as often as there can be elements.
func preservedSize(root *schema.Structural, path conversion.Path) (size int64, cause string) {
	at, count := root, int64(1)
	for _, segment := range path {
		if segment == conversion.Each && at.Items != nil {
			if v := validationOf(at); v.MaxItems != nil {
				count = times(count, *v.MaxItems)
			}
		}
		next := step(at, segment)
		if next == nil {
			return unbounded, "what its schema does not name"
		}
		at = next
	}
	size, cause = largest(at)
	return times(size, count), cause
}

// largest is how large a value of a schema may be, in bytes.
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
	for name, property := range s.Properties {
		one, why := largest(&property)
		if size = plus(size, plus(one, int64(len(name)))); one == unbounded {
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
