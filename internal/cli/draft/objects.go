// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// questions returns the base object of a version, objects that differ from it in one field, and objects with
// all fields.
func (p *prober) questions(root *field, version string) []question {
	m := &maker{crd: p.input.CRD.Spec.Group + "/" + version, kind: p.input.CRD.Spec.Names.Kind, namespaced: p.input.CRD.Spec.Scope == "Namespaced"}
	leaves := leavesOf(root)
	all := []question{{m.object(root, nil, 0), nil}}
	most := 8
	for most > 1 && len(leaves)*most > maxObjects {
		most--
	}
	// Fields that the schemas do not pair come first.
	slices.SortStableFunc(leaves, func(a, b *field) int { return cmp.Compare(p.rank(a), p.rank(b)) })
	for _, leaf := range leaves {
		before := len(all)
		n := forms(leaf, most)
		if leaf.kind == "string" && len(leaf.schema.Enum) == 0 && p.rank(leaf) == 0 {
			n++ // a list of strings
		}
		for i := range n {
			if object := m.object(root, leaf, i+1); object != nil && len(all) < maxObjects {
				all = append(all, question{object, leaf})
			}
		}
		if len(all) == before {
			p.report.NotProbed = append(p.report.NotProbed, Place{version, leaf.String()})
		}
	}
	for i := range 4 {
		m.all = true
		all = append(all, question{m.object(root, nil, i+1), nil})
	}
	return all
}

func (p *prober) rank(f *field) int {
	if p.guesser.pairs.partner[f] == nil {
		return 0
	}
	return 1
}

// leavesOf returns the fields below root that hold values.
func leavesOf(root *field) (leaves []*field) {
	var walk func(f *field)
	walk = func(f *field) {
		if len(f.children) == 0 && f.parent != nil {
			leaves = append(leaves, f)
		}
		for _, name := range slices.Sorted(maps.Keys(f.children)) {
			walk(f.children[name])
		}
	}
	walk(root)
	return leaves
}

// forms returns how many different values of a field are tried.
func forms(f *field, most int) int {
	switch {
	case len(f.schema.Enum) > 0:
		return min(len(f.schema.Enum), 4*most)
	case f.kind == "boolean":
		return 2
	case f.kind == "string":
		return most
	case f.kind == "integer" || f.kind == "number" || f.kind == kindIntOrString:
		return min(3, most)
	}
	return min(2, most)
}

// maker makes objects. Values of different fields differ, so that one is recognized at the other version.
type maker struct {
	crd, kind  string
	namespaced bool
	// all makes values for all fields, and not only for required ones.
	all bool
	// next has the fields around the one that is set, each with the one in it.
	next map[*field]*field
	only *field
	form int
}

// object returns an object with all required fields, and with the given one in one of its forms. It is nil if
// no value is known that the schema of the field allows.
func (m *maker) object(root, only *field, form int) []byte {
	m.next, m.only, m.form = map[*field]*field{}, only, form
	for f := only; f != nil && f.parent != nil; f = f.parent {
		m.next[f.parent] = f
	}
	made, found := m.value(root)
	object, isObject := made.(map[string]any)
	if !isObject || only != nil && !found {
		return nil
	}
	metadata := map[string]any{"name": "conversion-probe", "uid": "00000000-0000-0000-0000-000000000001"}
	if m.namespaced {
		metadata["namespace"] = "conversion-probe-namespace"
	}
	object["apiVersion"], object["kind"], object["metadata"] = m.crd, m.kind, metadata
	return preserved.Encode(object)
}

// value returns a value for a field, and whether the field that is set has a value in it.
func (m *maker) value(f *field) (value any, found bool) {
	switch {
	case f.kind == "object" && f.children != nil:
		return m.members(f)
	case f.children[conversion.Each] != nil:
		if needed := f.kind == "array" && f.schema.MinItems != nil && *f.schema.MinItems > 0; !needed && !m.wanted(f) {
			return around(f), false
		}
		element, found := m.value(f.children[conversion.Each])
		return around(f, element), found || element != nil && m.only == nil
	}
	form := 0
	if m.all || f == m.only {
		form = m.form
	}
	value = m.scalar(f, form)
	return value, value != nil && (f == m.only || m.all)
}

// around returns the list or map of a field, with an element or without any.
func around(f *field, element ...any) any {
	if f.kind == "array" {
		return append([]any{}, element...)
	}
	if len(element) == 0 {
		return map[string]any{}
	}
	return map[string]any{"probe": element[0]}
}

// wanted reports whether a field has a value besides required ones.
func (m *maker) wanted(f *field) bool { return m.all || m.next[f] != nil || f == m.only }

// maxFilled is the number of fields up to which elements of a list have a value in each scalar.
const maxFilled = 4

func (m *maker) members(f *field) (any, bool) {
	names := slices.Clone(f.schema.Required)
	if m.next[f] != nil {
		names = append(names, m.next[f].name())
	}
	if m.all {
		names = slices.Collect(maps.Keys(f.children))
	}
	if f.isElement() && f.parent.kind == "array" && len(f.children) <= maxFilled {
		// A converter may need all of an element, such as its key, to make something of it.
		for name, child := range f.children {
			if child.isScalar() {
				names = append(names, name)
			}
		}
	}
	object, found := map[string]any{}, false
	for _, name := range names {
		if child := f.children[name]; child != nil {
			value, inside := m.value(child)
			if value != nil {
				object[name] = value
			}
			found = found || inside
		}
	}
	return object, found
}

// scalar returns a value without fields of its own, nil if none is known that the schema allows. The form 0 is
// the same each time.
func (m *maker) scalar(f *field, form int) any {
	n := number(f, form)
	if len(f.schema.Enum) > 0 {
		return json.RawMessage(f.schema.Enum[max(form-1, 0)%len(f.schema.Enum)].Raw)
	}
	switch f.kind {
	case "boolean":
		return form != 2
	case "integer":
		return integerIn(f.schema, n)
	case "number":
		return json.Number(fmt.Sprintf("%d.5", n))
	case kindIntOrString:
		if form == 2 {
			return fmt.Sprintf("%d%%", n%100)
		}
		return n
	case "string":
		return textIn(f.schema, n, form)
	case "array", kindMap:
		if elements := elementsOf(f.schema); elements != nil {
			if value := m.scalar(&field{schema: elements, kind: kindOf(elements), path: f.path}, form); value != nil {
				return around(f, value)
			}
		}
		return nil
	case "object":
		return map[string]any{}
	}
	if f.schema.XEmbeddedResource {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("p%d", n)}}
	}
	if f.schema.XPreserveUnknownFields != nil && form != 2 {
		return map[string]any{"probe": fmt.Sprintf("p%d", n)}
	}
	return fmt.Sprintf("p%d", n)
}

// number returns a number that hardly another field or form has.
func number(f *field, form int) int64 {
	hash := fnv.New32a()
	hash.Write([]byte(f.String()))
	return 1000 + int64(hash.Sum32()%40000)*8 + int64(form)
}

func integerIn(s *props, n int64) any {
	least, most := int64(0), int64(1<<31-1)
	if s.Minimum != nil {
		least = int64(*s.Minimum)
		if s.ExclusiveMinimum {
			least++
		}
	}
	if s.Maximum != nil {
		most = int64(*s.Maximum)
		if s.ExclusiveMaximum {
			most--
		}
	}
	if most < least {
		return nil
	}
	if n < least || n > most {
		n = least + n%(most-least+1)
	}
	if s.MultipleOf != nil && *s.MultipleOf >= 1 {
		n -= n % int64(*s.MultipleOf)
	}
	return n
}

// textIn returns a text in one of the forms that rules read, if the schema allows it.
func textIn(s *props, n int64, form int) any {
	candidates := []string{
		fmt.Sprintf("p%d", n), fmt.Sprintf("p%d", n), fmt.Sprintf("%d", n), fmt.Sprintf("%dh%dm%ds", 1+n%20, 1+n%59, 1+n/20%59), fmt.Sprintf("%dMi", n),
		fmt.Sprintf("q%d", n), fmt.Sprintf("%d.5", n), fmt.Sprintf("p%d.example.com:%d", n, 1000+n%9000), fmt.Sprintf("%dms", n),
		fmt.Sprintf("p%d,q%d r%d;s%d", n, n, n, n),
	}
	switch s.Format {
	case "date-time":
		return fmt.Sprintf("20%02d-%02d-%02dT0%d:00:00Z", 10+n%80, 1+n/80%12, 1+n/960%28, form%10)
	case "date":
		return fmt.Sprintf("20%02d-%02d-%02d", 10+n%80, 1+n/80%12, 1+n/960%28)
	case "duration":
		return candidates[3]
	case "byte":
		return fmt.Sprintf("cHJv%04d", n%10000)
	case "uuid":
		return fmt.Sprintf("00000000-0000-0000-0000-%012d", n)
	case "ipv4":
		return fmt.Sprintf("10.%d.%d.%d", n/65536%256, n/256%256, n%256)
	case "ipv6":
		return fmt.Sprintf("2001:db8::%x", n%65536)
	case "cidr":
		return fmt.Sprintf("10.%d.%d.0/24", n/256%256, n%256)
	case "uri":
		return fmt.Sprintf("https://p%d.example.com", n)
	case "email":
		return fmt.Sprintf("p%d@example.com", n)
	}
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return nil
	}
	allowed := func(text string) bool {
		return (s.MaxLength == nil || int64(len(text)) <= *s.MaxLength) && (s.MinLength == nil || int64(len(text)) >= *s.MinLength) && pattern.MatchString(text)
	}
	if text := candidates[form%len(candidates)]; allowed(text) {
		return text
	}
	// The second form of a strict field is another value in the notation that it allows.
	candidates = append(candidates, fmt.Sprintf("p%d/q", n), fmt.Sprintf("P%d", n), strings.Map(letterOf, fmt.Sprint(n)), fmt.Sprintf("%ds", n),
		fmt.Sprintf("%dm", n), fmt.Sprintf("%dGi", n%100), fmt.Sprintf("%d%%", n%100), fmt.Sprintf("p%d.example.com/v1", n), fmt.Sprintf("v%d", n%9+1), fmt.Sprintf("0 %d * * *", n%24))
	candidates = append(candidates, matching(s.Pattern, n))
	for _, text := range candidates {
		if allowed(text) {
			return text
		}
	}
	return nil
}

// matching returns a text that a pattern allows, with the digits of n where it allows digits. It may be wrong.
func matching(pattern string, n int64) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	m := matcher{digits: fmt.Sprint(n)}
	m.write(parsed.Simplify())
	return m.text.String()
}

// matcher writes a text for a regular expression.
type matcher struct {
	text   strings.Builder
	digits string
}

// maxMatch bounds the text for a pattern.
const maxMatch = 300

func (m *matcher) write(re *syntax.Regexp) {
	if m.text.Len() > maxMatch {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		m.text.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		m.text.WriteRune(m.oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.text.WriteByte('x')
	case syntax.OpAlternate:
		m.write(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest: // nothing, which is shorter
	default: // a group, one or more, or a concatenation
		for _, sub := range re.Sub {
			m.write(sub)
		}
	}
}

// oneOf returns a rune of a class, the next digit if it has digits.
func (m *matcher) oneOf(class []rune) rune {
	for i := 0; i+1 < len(class) && len(m.digits) > 0; i += 2 {
		digit := rune(m.digits[0])
		if class[i] <= digit && digit <= class[i+1] {
			m.digits = m.digits[1:] + m.digits[:1]
			return digit
		}
	}
	if len(class) == 0 {
		return 'x'
	}
	return class[0]
}

func letterOf(digit rune) rune { return 'a' + digit - '0' }
