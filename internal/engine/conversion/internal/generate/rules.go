// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Rules generates rules between two versions. It leaves out rules that are not valid together with
// the rules before them.
func (c *Choices) Rules(spoke, hub *props, valid func([]v1alpha1.Rule) bool) []v1alpha1.Rule {
	m := ruleMaker{Choices: c, spoke: namedFields(spoke, ""), hub: namedFields(hub, "")}
	add := func(some ...v1alpha1.Rule) {
		if more := slices.Concat(m.made, some); len(some) > 0 && valid(more) {
			m.made = more
		}
	}
	addEach := func(rules []v1alpha1.Rule) {
		for _, rule := range rules {
			add(rule)
		}
	}
	if c.isNested() {
		addEach(c.nestedMoves(spoke, hub, "", ""))
		addEach(c.placedMoves(spoke, hub, "", "", m.made))
	}
	for range c.IntN(12) {
		add(m.rules()...)
	}
	if c.isSelecting() {
		addEach(append(m.selections(), m.picks()...))
	}
	return m.made
}

// namedField is a field with its path.
type namedField struct {
	path   v1alpha1.Path
	scope  string
	schema *props
}

// namedFields returns all fields that a rule can name.
func namedFields(s *props, at string) []namedField {
	var fields []namedField
	if at == "" {
		for _, label := range []string{`.metadata.labels["l"]`, `.metadata.annotations["l"]`} {
			fields = append(fields, namedField{v1alpha1.Path(label), "", &props{Type: "string"}})
		}
		for _, nowhere := range []string{".z.a", ".a[*]", ".a.b[*].c"} {
			fields = append(fields, namedField{v1alpha1.Path(nowhere), "", &props{Type: "string"}})
		}
	}
	add := func(path string, field *props) {
		scope := path[:strings.LastIndex("[*]"+path, "[*]")]
		fields = append(fields, namedField{v1alpha1.Path(path), scope, field})
		fields = append(fields, namedFields(field, path)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		add(at+quotedName(name), &field)
	}
	if s.Items != nil {
		fields = append(fields, namedFields(s.Items.Schema, at+"[*]")...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && at != "" {
		values := s.AdditionalProperties.Schema
		add(at+`["cpu"]`, values)
		fields = append(fields, namedFields(values, at+"[*]")...)
	}
	return fields
}

type ruleMaker struct {
	*Choices
	spoke, hub []namedField
	// made are the rules so far.
	made []v1alpha1.Rule
}

// rules generates one rule, and sometimes the rules that it requires: for a field of the other
// version with the same path.
func (m *ruleMaker) rules() []v1alpha1.Rule {
	if m.hasExpressions() && m.IntN(2) == 0 {
		return m.cel()
	}
	kind := One(m.Choices, "one-sided", "one-sided", "each", "move", "values", "format", "cast", "each", "each")
	if kind == "one-sided" {
		return m.oneSided()
	}
	from, to, found := m.partners(kind)
	if !found {
		return nil
	}
	if kind == "each" {
		return m.each(from, to)
	}
	rule, made := m.rule(kind, from, to)
	if !made {
		return nil
	}
	rules := []v1alpha1.Rule{rule}
	if from.path == to.path {
		return rules
	}
	if m.IntN(2) == 0 && has(m.hub, from.path) && has(m.spoke, to.path) {
		return append(rules, v1alpha1.Rule{Move: &v1alpha1.MoveRule{From: to.path, To: from.path}})
	}
	if m.Rarely(3) && has(m.hub, from.path) && !m.isRead(from.path) {
		rules = append(rules, v1alpha1.Rule{Drop: &v1alpha1.DropRule{To: from.path}})
	}
	if m.Rarely(3) && has(m.spoke, to.path) && !m.isRead(to.path) {
		rules = append(rules, v1alpha1.Rule{Drop: &v1alpha1.DropRule{From: to.path}})
	}
	return rules
}

func has(fields []namedField, path v1alpha1.Path) bool {
	return slices.ContainsFunc(fields, func(field namedField) bool { return field.path == path })
}

// partners returns two fields in the same lists and maps that a rule may fit, and sometimes any two
// fields.
func (m *ruleMaker) partners(kind string) (from, to namedField, found bool) {
	if m.Rarely(8) {
		return One(m.Choices, m.spoke...), One(m.Choices, m.hub...), kind != "each"
	}
	for _, from := range Shuffled(m.Choices, m.spoke) {
		for _, to := range Shuffled(m.Choices, m.hub) {
			if m.atHub(from.scope) == to.scope && mayFit(kind, from.schema, to.schema) {
				return from, to, true
			}
		}
	}
	return namedField{}, namedField{}, false
}

func mayFit(kind string, a, b *props) bool {
	switch kind {
	case "values":
		return len(tableValues[a.Type]) > 0 && len(tableValues[b.Type]) > 0
	case "format":
		return a.Type == "string" && (b.Type == "string" || b.Type == "integer")
	case "cast":
		return a.Type == "string" && len(castsOf(b)) > 0 || b.Type == "string" && len(castsOf(a)) > 0
	case "each":
		return pairsElements(a, b)
	}
	return a.Type == b.Type && a.XIntOrString == b.XIntOrString || widens(a, b) || widens(b, a)
}

// widens reports whether a scalar allows all values of another scalar, and more.
func widens(wide, narrow *props) bool {
	isAnything := wide.Type == "" && !wide.XIntOrString && wide.XPreserveUnknownFields != nil
	return wide.XIntOrString && (narrow.Type == "integer" || narrow.Type == "string") || wide.Type == "number" && narrow.Type == "integer" ||
		isAnything && (constants[narrow.Type] != nil || narrow.XIntOrString)
}

// elements returns the schema of the elements of a list or map, nil if s is neither.
func elements(s *props) *props {
	switch {
	case s.Items != nil:
		return s.Items.Schema
	case s.AdditionalProperties != nil:
		return s.AdditionalProperties.Schema
	}
	return nil
}

// valueFields returns the fields of objects that have the type of a value.
func valueFields(objects, value *props) []string {
	var names []string
	if objects == nil || value == nil || objects.Type != "object" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(objects.Properties)) {
		if objects.Properties[name].Type == value.Type && objects.Properties[name].XIntOrString == value.XIntOrString {
			names = append(names, name)
		}
	}
	return names
}

func (m *ruleMaker) rule(kind string, from, to namedField) (rule v1alpha1.Rule, made bool) {
	if isNumeric(from.schema) && isNumeric(to.schema) && m.Often(3) {
		rule.Scale = m.scale(from, to)
		return rule, true
	}
	switch kind {
	case "move":
		rule.Move = &v1alpha1.MoveRule{From: from.path, To: to.path}
	case "values":
		rule.Values = &v1alpha1.ValuesRule{From: from.path, To: to.path, Table: m.table(from.schema.Type, to.schema.Type)}
	case "format":
		return m.format(from)
	case "cast":
		rule.Cast = m.cast(from, to)
	}
	return rule, true
}

// castsOf returns the casts between a string and a field with a schema.
func castsOf(s *props) []v1alpha1.CastType {
	switch {
	case s.Type == "integer":
		return []v1alpha1.CastType{v1alpha1.CastInteger, v1alpha1.CastSeconds, v1alpha1.CastMilliseconds, v1alpha1.CastQuantity, v1alpha1.CastTimestamp}
	case s.Type == "number":
		return []v1alpha1.CastType{v1alpha1.CastNumber}
	case s.Type == "boolean":
		return []v1alpha1.CastType{v1alpha1.CastBoolean}
	case s.Items != nil && s.Items.Schema.Type == "string":
		return []v1alpha1.CastType{v1alpha1.CastList, v1alpha1.CastJSON, v1alpha1.CastYAML}
	case s.Items != nil, s.Type == "object", s.Type == "" && !s.XIntOrString:
		return []v1alpha1.CastType{v1alpha1.CastJSON, v1alpha1.CastYAML}
	}
	return nil
}

func (m *ruleMaker) cast(from, to namedField) *v1alpha1.CastRule {
	rule := &v1alpha1.CastRule{From: from.path, To: to.path, As: v1alpha1.CastInteger}
	if casts := append(castsOf(from.schema), castsOf(to.schema)...); len(casts) > 0 {
		rule.As = One(m.Choices, casts...)
	}
	switch rule.As {
	case v1alpha1.CastQuantity:
		rule.Unit = One(m.Choices, "1", "m", "k", "G", "Ki", "Gi", "Ti")
	case v1alpha1.CastList:
		rule.Separator = One(m.Choices, ",", "a", ", ", "--")
	}
	return rule
}

func isNumeric(s *props) bool { return s.Type == "integer" || s.Type == "number" }

func (m *ruleMaker) scale(from, to namedField) *v1alpha1.ScaleRule {
	factor := One(m.Choices, int64(2), 3, 10, 60, 1024, 1e15)
	if m.IntN(2) == 0 {
		return &v1alpha1.ScaleRule{From: from.path, To: to.path, Multiply: factor}
	}
	return &v1alpha1.ScaleRule{From: from.path, To: to.path, Divide: factor}
}

// key returns a field that the list's elements have, most of the time.
func (m *ruleMaker) key(from, to namedField) string {
	list := from.schema
	if list.Items == nil {
		list = to.schema
	}
	if list.Items == nil {
		return "name"
	}
	if len(list.XListMapKeys) > 0 && m.Often(4) {
		return list.XListMapKeys[0]
	}
	return One(m.Choices, append(slices.Sorted(maps.Keys(list.Items.Schema.Properties)), "name")...)
}

// tableValues are values for tables, by the type of the field.
var tableValues = map[string][]string{
	"string":  {"a", "b", "c", ":", "", "true", "80"},
	"boolean": {"true", "false"},
	"integer": {"80", "0", "-1", "1", "9223372036854775807"},
}

func (m *ruleMaker) table(from, to string) []v1alpha1.ValuePair {
	var table []v1alpha1.ValuePair
	for range 1 + m.IntN(4) {
		table = append(table, v1alpha1.ValuePair{From: m.tableValue(from), To: m.tableValue(to)})
	}
	return table
}

func (m *ruleMaker) tableValue(kind string) string {
	values := tableValues[kind]
	if len(values) == 0 || m.Rarely(20) {
		values = tableValues["string"]
	}
	return One(m.Choices, values...)
}

// format generates a template of up to three fields of the hub.
func (m *ruleMaker) format(from namedField) (rule v1alpha1.Rule, made bool) {
	var fields []namedField
	for _, field := range Shuffled(m.Choices, m.hub) {
		if field.scope == m.atHub(from.scope) && (field.schema.Type == "string" || field.schema.Type == "integer") && len(fields) < 1+m.IntN(3) {
			fields = append(fields, field)
		}
	}
	template, to := One(m.Choices, "", "", "<", "a"), map[string]v1alpha1.Path{}
	for i, field := range fields {
		name := fmt.Sprint("h", i)
		template += "{" + name + "}"
		if to[name] = field.path; i < len(fields)-1 {
			template += One(m.Choices, ":", "-", "aa", "é")
		}
	}
	template += One(m.Choices, "", "", ">", ":")
	return v1alpha1.Rule{Format: &v1alpha1.FormatRule{From: from.path, Template: template, To: to}}, len(fields) > 0
}

// oneSided generates a rule for a field of one version: a default or a drop.
func (m *ruleMaker) oneSided() []v1alpha1.Rule {
	ofHub := m.IntN(2) == 0
	field := One(m.Choices, m.spoke...)
	if ofHub {
		field = One(m.Choices, m.hub...)
	}
	from, to := field.path, v1alpha1.Path("")
	if ofHub {
		from, to = to, from
	}
	if m.Rarely(3) {
		return []v1alpha1.Rule{{Drop: &v1alpha1.DropRule{From: from, To: to}}}
	}
	value := map[string]string{"string": `"a"`, "integer": "80", "boolean": "true", "array": "[]", "object": `{"a":"b"}`, "number": "1.0"}[field.schema.Type]
	rule := &v1alpha1.DefaultRule{From: from, To: to, Value: &apiextensionsv1.JSON{Raw: []byte(value)}}
	if field.schema.Type == "string" && m.IntN(2) == 0 {
		rule.Value, rule.ValueFrom = nil, One(m.Choices, v1alpha1.DefaultFromName, v1alpha1.DefaultFromNamespace)
	}
	return []v1alpha1.Rule{{Default: rule}}
}
