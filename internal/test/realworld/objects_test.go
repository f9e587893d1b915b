// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// quantity is the pattern of a resource.Quantity.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// quantities are examples of realistic size.
var quantities = []any{"1", "500m", "1Gi", "0.5", "2k", "1e3", "-1", 7, 0, "1500m", "0"}

// objects generates random values for a schema, as far as types, bounds, enums and patterns
// describe them. Chance and validation do the rest.
type objects struct {
	*rand.Rand
	// examples are for fields whose schema is less strict than the project's Go type, by path or by
	// pattern.
	examples map[string][]any
}

func (o *objects) object(apiVersion, kind string, schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	made := o.fields(schema, "")
	made["apiVersion"], made["kind"] = apiVersion, kind
	metadata := map[string]any{"name": "some-name", "namespace": "some-namespace"}
	if o.IntN(2) == 0 {
		metadata["annotations"] = map[string]any{"example.com/note": o.word()}
		metadata["labels"] = map[string]any{"app": "some-app"}
	} else if annotations := o.examples[".metadata.annotations"]; annotations != nil {
		metadata["annotations"] = pick(o, annotations)
	}
	made["metadata"] = metadata
	return made
}

func (o *objects) value(schema *apiextensionsv1.JSONSchemaProps, path string) any {
	switch {
	case len(schema.Enum) > 0:
		return decode(schema.Enum[o.IntN(len(schema.Enum))].Raw)
	case o.examples[path] != nil:
		return pick(o, o.examples[path])
	case o.examples[schema.Pattern] != nil:
		return pick(o, o.examples[schema.Pattern])
	case schema.XIntOrString && o.IntN(2) == 0:
		return int64(o.IntN(100))
	case schema.Type == "string" || schema.XIntOrString:
		return o.text(schema)
	case schema.Type == "integer":
		return o.integer(schema)
	case schema.Type == "number":
		return float64(o.IntN(1000)) / 8
	case schema.Type == "boolean":
		return o.IntN(2) == 0
	case schema.Type == "array":
		return o.list(schema, path)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return o.mapping(schema, path)
	case schema.Type == "" || schema.XPreserveUnknownFields != nil:
		return map[string]any{"anything": []any{o.word(), int64(o.IntN(9))}}
	}
	return o.fields(schema, path)
}

// fields returns an object with as many fields as the schema requires, or nil if chance does not give one.
func (o *objects) fields(schema *apiextensionsv1.JSONSchemaProps, path string) map[string]any {
	for range 100 {
		if made := o.someFields(schema, path); schema.MinProperties == nil || len(made) >= int(*schema.MinProperties) {
			return made
		}
	}
	return nil
}

func (o *objects) someFields(schema *apiextensionsv1.JSONSchemaProps, path string) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		if slices.Contains(schema.Required, name) || o.IntN(3) > 0 {
			property := schema.Properties[name]
			made[name] = o.value(&property, path+"."+name)
		}
	}
	return made
}

func (o *objects) list(schema *apiextensionsv1.JSONSchemaProps, path string) []any {
	made := make([]any, o.length(schema.MinItems, schema.MaxItems))
	for i := range made {
		made[i] = o.value(schema.Items.Schema, path+"[*]")
	}
	return made
}

func (o *objects) mapping(schema *apiextensionsv1.JSONSchemaProps, path string) map[string]any {
	made := map[string]any{}
	for range o.length(schema.MinProperties, schema.MaxProperties) {
		made[o.word()] = o.value(schema.AdditionalProperties.Schema, path+"[*]")
	}
	return made
}

// length returns the allowed minimum, or up to two more.
func (o *objects) length(least, most *int64) int64 {
	length := int64(o.IntN(3))
	if least != nil {
		length += *least
	}
	if most != nil {
		length = min(length, *most)
	}
	return length
}

func (o *objects) integer(schema *apiextensionsv1.JSONSchemaProps) int64 {
	least, most := int64(math.MinInt32), int64(math.MaxInt32)
	if schema.Format == "int64" {
		least, most = -1<<60, 1<<60
	}
	if schema.Minimum != nil {
		least = int64(*schema.Minimum)
	}
	if schema.Maximum != nil {
		most = min(most, int64(*schema.Maximum))
	}
	near := []int64{least, min(least+1, most), most, max(least, min(most, 0)), max(least, min(most, 300))}
	if o.IntN(2) == 0 {
		return pick(o, near)
	}
	return least + o.Int64N(most-least+1)
}

func (o *objects) text(schema *apiextensionsv1.JSONSchemaProps) string {
	text := o.word()
	switch {
	case schema.Pattern != "":
		text = o.matching(schema.Pattern)
	case schema.Format == "date-time":
		text = fmt.Sprintf("2026-%02d-%02dT%02d:00:00Z", 1+o.IntN(12), 1+o.IntN(28), o.IntN(24))
	case schema.MinLength == nil && o.IntN(8) == 0:
		text = ""
	}
	if schema.MaxLength != nil {
		text = text[:min(int64(len(text)), *schema.MaxLength)]
	}
	return text
}

func (o *objects) word() string {
	return pick(o, []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}) + fmt.Sprint(o.IntN(1000))
}

// patterns has the regular expressions that were parsed.
var patterns sync.Map

// matching returns text for a regular expression.
func (o *objects) matching(pattern string) string {
	simple, isParsed := patterns.Load(pattern)
	if !isParsed {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			panic(err) // the API server would refuse it, too
		}
		simple = parsed.Simplify()
		patterns.Store(pattern, simple)
	}
	return o.regexp(simple.(*syntax.Regexp))
}

func (o *objects) regexp(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		class := 2 * o.IntN(len(re.Rune)/2)
		return string(re.Rune[class] + o.Int32N(min(re.Rune[class+1]-re.Rune[class], 50)+1))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpAlternate:
		return o.regexp(pick(o, re.Sub))
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return o.repeat(re)
	}
	text := ""
	for _, sub := range re.Sub { // a group, a concatenation, or nothing at all
		text += o.regexp(sub)
	}
	return text
}

func (o *objects) repeat(re *syntax.Regexp) string {
	least, most := 0, 3
	if re.Op == syntax.OpPlus {
		least = 1
	}
	if re.Op == syntax.OpQuest {
		most = 1
	}
	text := ""
	for range least + o.IntN(most-least+1) {
		text += o.regexp(re.Sub[0])
	}
	return text
}

func pick[T any](o *objects, from []T) T { return from[o.IntN(len(from))] }
