// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Objects generates values that fit a schema.
type Objects struct {
	*Choices
	// Words are additional parts of texts.
	Words []string
	// Values are used for fields of any type if they fit.
	Values []any
	// MisfitEvery makes one in this many values one that does not fit its schema; 0 makes none.
	MisfitEvery int
}

// words include texts that conversions look for, and characters that JSON escapes.
var words = []string{
	"", "a", "b", "c", ":", "/", "-", "7", "007", "80", "-0", "90s", "1m30s", "0s", "1.5s", " ", "null", "x.y/z~", `"`, `\`, "\n\x01\u007f",
	"é", "\u2028", "\U0001F600", "<&>", "9223372036854775807", "9223372036854775808", "[*]", "{}", "\x00",
}

// labels are valid label values.
var labels = []string{"", "a", "b", "7", "007", "80", "90s", "1m30s", "a.b-c_d", "9223372036854775807"}

var long = strings.Repeat("long ", 300)

var integers = []string{"0", "1", "2", "80", "-5", "90", "9007199254740993", "9223372036854775807", "-9223372036854775808", "12345678901234567890"}

var numbers = []string{"1.0", "-0", "0.10", "1e3", "1E-7", "1e400", "-1.5e+10", "0.1e1", "3.141592653589793238"}

// Object generates an object of a version, or a fragment of one as server-side apply sends it:
// required fields may be missing.
func (g *Objects) Object(root *schema.Structural, apiVersion, kind string) map[string]any {
	object := g.object(root)
	for _, name := range []string{"spec", "status"} {
		if g.Rarely(12) {
			delete(object, name)
		}
	}
	object["apiVersion"], object["kind"] = apiVersion, kind
	delete(object, "metadata")
	if g.Often(12) {
		object["metadata"] = g.metadata()
	}
	return object
}

func (g *Objects) metadata() map[string]any {
	metadata := map[string]any{}
	if g.IntN(2) == 0 {
		metadata["name"], metadata["namespace"] = "w", "default"
	}
	if g.Rarely(3) {
		metadata["uid"] = "5c0a2d4e-0000-4000-8000-000000000001"
	}
	if g.Rarely(3) {
		metadata["labels"] = map[string]any{One(g.Choices, "l", "bottom"): One(g.Choices, labels...), "app.kubernetes.io/name": One(g.Choices, labels...)}
	}
	if g.Rarely(4) {
		metadata["annotations"] = g.texts(One(g.Choices, "l", "other"), "example.com/note")
	}
	if g.Rarely(4) {
		metadata["generation"], metadata["finalizers"] = json.Number("3"), []any{"example.com/keep"}
	}
	if g.Rarely(4) {
		metadata["managedFields"] = []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}}}}}
	}
	return metadata
}

func (g *Objects) texts(names ...string) map[string]any {
	object := map[string]any{}
	for _, name := range names {
		object[name] = g.text()
	}
	return object
}

func (g *Objects) text() string {
	all := slices.Concat(words, g.Words)
	var text strings.Builder
	for range One(g.Choices, 1, 1, 2, 3) {
		text.WriteString(One(g.Choices, all...))
	}
	if g.Rarely(200) {
		text.WriteString(long)
	}
	return text.String()
}

// Value generates a value that fits a schema, or null if it finds none.
func (g *Objects) Value(s *schema.Structural) any {
	value, _ := g.value(s)
	return value
}

// value generates a value that fits a schema, or reports that it finds none.
func (g *Objects) value(s *schema.Structural) (value any, found bool) {
	switch {
	case s.Nullable && g.Rarely(4), g.Rarely(60):
		return nil, true // the API server stores a null even if the schema does not allow it
	case g.MisfitEvery > 0 && g.Rarely(g.MisfitEvery):
		return g.Anything(3), true
	case s.Default.Object != nil && g.Rarely(3):
		return withTextNumbers(s.Default.Object), true
	}
	if s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0 {
		return withTextNumbers(One(g.Choices, s.ValueValidation.Enum...).Object), true
	}
	for range 8 {
		if value := g.candidate(s); fitsSchema(value, s) {
			return value, true
		}
	}
	return nil, false
}

func (g *Objects) candidate(s *schema.Structural) any {
	if len(g.Values) > 0 && g.Rarely(4) {
		return withTextNumbers(One(g.Choices, g.Values...))
	}
	switch {
	case s.XIntOrString:
		return One[any](g.Choices, json.Number("80"), "80", "http", json.Number("0"), "50%")
	case s.Type == "string":
		return g.textOf(s.ValueValidation)
	case s.Type == "integer":
		return g.integer(s.ValueValidation)
	case s.Type == "number":
		return json.Number(One(g.Choices, slices.Concat(integers, numbers)...))
	case s.Type == "boolean":
		return g.IntN(2) == 0
	case s.Type == "array":
		return g.list(s)
	case s.Type == "object":
		return g.object(s)
	}
	return g.Anything(2)
}

// formats are texts of the formats that the API server checks.
var formats = map[string][]string{
	"date-time": {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+01:00"}, "date": {"2026-01-02"}, "duration": {"90s", "1h", "1m30s"},
	"byte": {"", "aGVsbG8="}, "ipv4": {"192.0.2.1"}, "ipv6": {"2001:db8::1"}, "cidr": {"192.0.2.0/24"}, "uri": {"https://example.com/a?b"},
	"uuid": {"5c0a2d4e-0000-4000-8000-000000000001"}, "email": {"a@example.com"}, "hostname": {"example.com"}, "password": {"secret"},
}

func (g *Objects) textOf(rules *schema.ValueValidation) any {
	if rules != nil && len(formats[rules.Format]) > 0 {
		return One(g.Choices, formats[rules.Format]...)
	}
	text := g.text()
	if rules != nil && rules.MinLength != nil {
		text += strings.Repeat("x", max(0, int(*rules.MinLength)-len(text)))
	}
	return text
}

func (g *Objects) integer(rules *schema.ValueValidation) any {
	all := slices.Clone(integers)
	if rules != nil {
		for _, bound := range []*float64{rules.Minimum, rules.Maximum} {
			if bound != nil {
				all = append(all, fmt.Sprint(int64(*bound)), fmt.Sprint(int64(*bound)))
			}
		}
	}
	return json.Number(One(g.Choices, all...))
}

func (g *Objects) list(s *schema.Structural) any {
	list := []any{}
	if s.Items == nil {
		return list
	}
	seen := map[string]bool{}
	for i := range One(g.Choices, 0, 1, 2, 2, 3, 5) {
		element, found := g.value(s.Items)
		if !found {
			continue
		}
		unique := g.key(element, s, i)
		if s.XListType != nil && *s.XListType != "atomic" && seen[unique] {
			continue // elements of a set or map are unique
		}
		seen[unique] = true
		list = append(list, element)
	}
	return list
}

// key sets the keys of an element of a list map, and returns a text that identifies the element.
func (g *Objects) key(element any, s *schema.Structural, i int) string {
	object, isObject := element.(map[string]any)
	if !isObject || s.XListType == nil || *s.XListType != "map" {
		return Plain(element)
	}
	var unique strings.Builder
	for _, key := range s.XListMapKeys {
		property := s.Items.Properties[key]
		switch value, found := g.value(&property); {
		case found && value != nil:
			object[key] = value
		case property.Type == "integer":
			object[key] = json.Number(fmt.Sprint(i))
		default:
			object[key] = fmt.Sprint("n/", i)
		}
		unique.WriteString(Plain(object[key]))
	}
	return unique.String()
}

// names are keys of maps, and names of fields that no schema has.
var names = []string{"a", "b", "cpu", "k/~", "x.y", "7", "10", `q"`, "é"}

func (g *Objects) object(s *schema.Structural) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if value, found := g.value(&property); found && g.IntN(3) > 0 {
			object[name] = value
		}
	}
	if s.XEmbeddedResource {
		object["apiVersion"], object["kind"], object["metadata"] = "v1", "ConfigMap", g.texts("name")
	}
	for range g.IntN(4) {
		name := One(g.Choices, slices.Concat(names, g.Words)...)
		_, taken := object[name]
		if _, declared := s.Properties[name]; taken || declared || name == "" {
			continue
		}
		switch {
		case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
			if value, found := g.value(s.AdditionalProperties.Structural); found {
				object[name] = value
			}
		case s.XPreserveUnknownFields, s.AdditionalProperties != nil:
			object[name] = g.Anything(2)
		}
	}
	return object
}

// Anything generates any JSON value with the given maximum depth.
func (g *Objects) Anything(depth int) any {
	switch kind := g.IntN(8); {
	case kind == 0:
		return nil
	case kind == 1:
		return g.IntN(2) == 0
	case kind == 2:
		return json.Number(One(g.Choices, slices.Concat(integers, numbers)...))
	case kind < 5 || depth == 0:
		return g.text()
	case kind == 5:
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.Anything(depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range g.IntN(3) {
		object[One(g.Choices, names...)] = g.Anything(depth - 1)
	}
	return object
}

// fitsSchema reports whether a value has the schema's type and respects those limits that this
// package generates.
func fitsSchema(value any, s *schema.Structural) bool {
	rules := s.ValueValidation
	if rules == nil {
		rules = &schema.ValueValidation{}
	}
	if s.Type == "" && !s.XIntOrString {
		return true
	}
	switch value := value.(type) {
	case string:
		return (s.Type == "string" || s.XIntOrString) && textFits(value, rules)
	case json.Number:
		number, _ := value.Float64()
		integral := !strings.ContainsAny(value.String(), ".eE")
		return (s.Type == "integer" && integral || s.XIntOrString && integral || s.Type == "number") &&
			(rules.Minimum == nil || number >= *rules.Minimum) && (rules.Maximum == nil || number <= *rules.Maximum)
	case bool:
		return s.Type == "boolean"
	case []any:
		return s.Type == "array" && (rules.MaxItems == nil || len(value) <= int(*rules.MaxItems)) && (rules.MinItems == nil || len(value) >= int(*rules.MinItems))
	case map[string]any:
		for name := range value {
			if _, named := s.Properties[name]; !named && !s.XPreserveUnknownFields && s.AdditionalProperties == nil {
				return false // the API server would have pruned it
			}
		}
		return s.Type == "object"
	}
	return false
}

func textFits(text string, rules *schema.ValueValidation) bool {
	length := int64(len([]rune(text)))
	if rules.MaxLength != nil && length > *rules.MaxLength || rules.MinLength != nil && length < *rules.MinLength {
		return false
	}
	return rules.Pattern == "" || regexp.MustCompile(rules.Pattern).MatchString(text)
}

// withTextNumbers converts the numbers of a value in a schema to json.Number.
func withTextNumbers(value any) any {
	again, err := preserved.Decode([]byte(Plain(value)))
	if err != nil {
		panic(err) // it was just written
	}
	return again
}
