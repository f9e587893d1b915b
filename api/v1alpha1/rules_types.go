// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rule is one bidirectional rule. Exactly one member is set. An earlier CustomResourceDefinition
// removes a rule that it does not know and leaves {}, which is an invalid rule.
// +kubebuilder:validation:XValidation:rule="[has(self.move), has(self.each), has(self.format), has(self.default), has(self.values), has(self.drop), has(self.cast), has(self.scale), has(self.cel), has(self.use)].filter(x, x).size() == 1",message="set exactly one of move, each, format, default, values, drop, cast, scale, cel, use"
type Rule struct {
	// move maps a value that has different paths in the two versions.
	// +optional
	Move *MoveRule `json:"move,omitempty"`

	// each pairs the elements of a list or map with those of another one, or one value with the
	// elements of a list.
	// +optional
	Each *EachRule `json:"each,omitempty"`

	// format maps one string of the spoke to several fields of the hub.
	// +optional
	Format *FormatRule `json:"format,omitempty"`

	// default fills a field that only one of the two versions has.
	// +optional
	Default *DefaultRule `json:"default,omitempty"`

	// values maps strings, booleans and integers by a table.
	// +optional
	Values *ValuesRule `json:"values,omitempty"`

	// drop drops a field that only one of the two versions has. Only this rule, and cel in one
	// direction, lose data.
	// +optional
	Drop *DropRule `json:"drop,omitempty"`

	// cast maps a number of one version to a string of the other.
	// +optional
	Cast *CastRule `json:"cast,omitempty"`

	// scale maps a number to the same in another unit.
	// +optional
	Scale *ScaleRule `json:"scale,omitempty"`

	// cel computes fields by expressions: in both directions, or in one.
	// +optional
	CEL *CELRule `json:"cel,omitempty"`

	// use applies the rules of a group to an object, or to each element of a list or map.
	// +optional
	Use *UseRule `json:"use,omitempty"`
}

// Kind returns the name of the member that is set, such as move. It is empty if this version
// of the operator does not know the rule.
func (r *Rule) Kind() string {
	rule := reflect.ValueOf(r).Elem()
	for member := range rule.Type().Fields() {
		if !rule.FieldByIndex(member.Index).IsNil() {
			kind, _, _ := strings.Cut(member.Tag.Get("json"), ",")
			return kind
		}
	}
	return ""
}

// Paths returns the paths of the rule in the spoke and in the hub, those of several fields sorted.
func (r *Rule) Paths() (spoke, hub []Path) {
	for _, member := range reflect.ValueOf(r).Elem().Fields() {
		if !member.IsNil() {
			return pathsIn(member.Elem().FieldByName("From")), pathsIn(member.Elem().FieldByName("To"))
		}
	}
	return nil, nil
}

func pathsIn(member reflect.Value) []Path {
	switch paths := member.Interface().(type) {
	case map[string]Path:
		return slices.Sorted(maps.Values(paths))
	case Path:
		if paths != "" {
			return []Path{paths}
		}
	}
	return nil
}

// ReplacePaths replaces the paths of the rule in the spoke and in the hub, those of several fields in
// the order of their names. The rule must not share its maps with others.
func (r *Rule) ReplacePaths(spoke, hub func(Path) Path) {
	for _, member := range reflect.ValueOf(r).Elem().Fields() {
		if !member.IsNil() {
			replacePathsIn(member.Elem().FieldByName("From"), spoke)
			replacePathsIn(member.Elem().FieldByName("To"), hub)
		}
	}
}

func replacePathsIn(member reflect.Value, replaced func(Path) Path) {
	switch paths := member.Interface().(type) {
	case map[string]Path:
		for _, name := range slices.Sorted(maps.Keys(paths)) {
			paths[name] = replaced(paths[name])
		}
	case Path:
		if paths != "" {
			member.Set(reflect.ValueOf(replaced(paths)))
		}
	}
}

// Path is a field of an object: `.spec.host`, `.spec.ports[*].name` (every
// element of a list, every value of a map), `.spec.containers[name=main].image` (the element of a
// list with this key), `.metadata.labels["app.kubernetes.io/name"]`.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^\.[A-Za-z_$][A-Za-z0-9_$-]*((\.[A-Za-z_$][A-Za-z0-9_$-]*)|(\["[^"\\]+"\])|(\[\*\])|(\[[A-Za-z_$][A-Za-z0-9_$-]*=[^"\\\]]+\]))*$`
type Path string

// MoveRule moves a value, which may be a subtree of any type, to another path. Other rules may be
// for fields in an object, list or map that only gets another name.
type MoveRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
}

// EachRule pairs the elements of a list or map of the spoke with those of a list or map of the hub, or
// one value with a list that has it as its element. The schemas determine what is a list. Elements are
// converted like whole objects: equal fields are copied, others are preserved, and other rules may be
// for fields of the elements, and for elements as a whole, at any depth. Their paths go through
// both lists or maps, such as .spec.services[*].host and .spec.components[*].address.
//
// A missing list is a missing map or value, and null is null. If one version has a list and the other a
// map, the list is sorted by its keys, unless its order is preserved; a list with a duplicate key, or with
// an element without a key, is preserved completely, and the other version has no value. If one
// version has one value, it is the first element of the list, and the others are preserved.
type EachRule struct {
	// from is the path of the list, map or value in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path of the list, map or value in the hub.
	// +required
	To Path `json:"to"`
	// key is the name of a field of the list's elements, a string or an integer, which is the key of the
	// map: every element of the list has it, and those of the map do not. With two lists, it identifies
	// their elements, if their schemas do not say so.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// where are conditions that the elements of a list meet which both versions can have, at most one for the
	// elements of each version. All others stay in their version. They are preserved whole, and come
	// back at their index, or at the end if the list has become shorter; also if clients have changed the
	// list, or removed it, in the other version: clients there do not see them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Where []EachCondition `json:"where,omitempty"`
}

// EachCondition is a condition for elements: they have a field, or one of several values in it. In a list
// with keys, the field is a key.
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field of the spoke's elements, or to, for one of the hub's"
type EachCondition struct {
	// from is the path of a field in the spoke's elements, such as .extract, if only the spoke can have others.
	// An element in which it is missing or null does not meet the condition.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field in the hub's elements, if only the hub can have others.
	// +optional
	To Path `json:"to,omitempty"`
	// values are the values of the field, a string, that both versions can have.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=253
	Values []string `json:"values,omitempty"`
}

// FormatRule splits and joins a string: one template parses the spoke's string into fields
// of the hub, and prints it from them.
type FormatRule struct {
	// from is the path of the string in the spoke.
	// +required
	From Path `json:"from"`

	// template is text with named placeholders, `{host}:{port}`. Two placeholders need
	// text between them, so that there is only one way to parse a string. A placeholder
	// before a text matches as little as possible; the last one matches the rest.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template"`

	// to maps every placeholder of the template to a path of the hub.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	To map[string]Path `json:"to"`
}

// DefaultRule fills a field that only one of the two versions has. It fills complete
// objects only, never the fragment that a client applies, and only if the parent object,
// as far as both versions have it, exists. The other direction removes this value. Any
// other value, an explicit null and a missing field are preserved, and come back
// unchanged.
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field that only the spoke has, or to, for one that only the hub has"
type DefaultRule struct {
	// from is the path of a field that only the spoke has.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field that only the hub has.
	// +optional
	To Path `json:"to,omitempty"`
	// value is the value of the field, of the field's type. Set it, or valueFrom.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
	// valueFrom is the metadata of the object that is the value: its name or its namespace.
	// +optional
	ValueFrom DefaultSource `json:"valueFrom,omitempty"`
}

// DefaultSource is the metadata of an object that a default may take its value from.
// +kubebuilder:validation:Enum=.metadata.name;.metadata.namespace
type DefaultSource string

const (
	// DefaultFromName is the name of the object.
	DefaultFromName DefaultSource = ".metadata.name"
	// DefaultFromNamespace is the namespace of the object.
	DefaultFromNamespace DefaultSource = ".metadata.namespace"
)

// DropRule drops a field that the other version lacks: its value, which may be null or a
// subtree, is lost when the object is converted. Without a rule, such a field is
// preserved. A field of the other version with the same path is preserved there.
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field of the spoke, or to, for one of the hub"
type DropRule struct {
	// from is the path of a field of the spoke.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field of the hub.
	// +optional
	To Path `json:"to,omitempty"`
}

// ValuesRule maps a string, a boolean or an integer by a table, in both directions. If both
// fields have the same type, a value that is not in the table is copied unchanged;
// otherwise it is preserved, and the other version has no value. Null is copied, and a
// missing value stays missing. A value that would not come back unchanged is preserved.
type ValuesRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
	// table pairs the spoke's values with the hub's. If a value is in several pairs, it is
	// converted by the first of them.
	// +required
	// +listType=map
	// +listMapKey=from
	// +listMapKey=to
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Table []ValuePair `json:"table"`
}

// ValuePair is a value of the spoke with the hub's value for it.
type ValuePair struct {
	// from is the value in the spoke: text, also for a boolean ("true") and an integer ("8").
	// +required
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// to is the value in the hub, as text.
	// +required
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
}

// ScaleRule maps a number to the same in another unit: the hub's number is the spoke's, multiplied
// or divided. Each of the fields is an integer or a number. Results are exact: a value without an
// exact one, such as 90 seconds in whole minutes, is only preserved, and the other version has no
// value then. A missing value stays missing, and null stays null.
// +kubebuilder:validation:XValidation:rule="has(self.multiply) != has(self.divide)",message="set multiply or divide, by which the spoke's number gives the hub's"
type ScaleRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
	// multiply is by what the spoke's number is multiplied: 60 from minutes to seconds.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000000000000000
	Multiply int64 `json:"multiply,omitempty"`
	// divide is by what the spoke's number is divided: 1000 from milliseconds to seconds.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1000000000000000
	Divide int64 `json:"divide,omitempty"`
}

// CELRule computes the hub's fields from the spoke's by expressions, and the spoke's from
// the hub's. In the expressions, self is an object with the named fields of the version
// that is converted: use self.packed, and has(self.packed) or self.?packed for one that
// may be missing; null counts as missing. metadata.name and metadata.namespace are those of
// the object. An expression gives no value if it reads a
// missing field, fails, costs too much, or evaluates to null or optional.none(): cond ? self.a :
// null. A result has to have the field's type, at compile
// time if its type is known then, and is no value if the field's schema does not allow it. What an
// expression returns may be of several types, as in a choice, and members of objects that the field
// does not have are left out. If
// all fields that they read are missing, nothing is computed, unless whenMissing is Evaluate. A
// value that would not come back unchanged is preserved.
//
// A field without an expression is only read: other rules may be for it, and it may be in an
// object around the elements of which the rule computes fields. With only one of forward
// and backward, the rule derives the fields that it computes: they follow the fields that it
// reads, and what a client writes to them is dropped.
// +kubebuilder:validation:XValidation:rule="has(self.forward) || has(self.backward)",message="set forward, backward, or both"
type CELRule struct {
	// from names the spoke's fields. The expressions use these names: letters, digits and
	// _.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	From map[string]Path `json:"from"`
	// to names the hub's fields.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	To map[string]Path `json:"to"`
	// forward has expressions over the spoke's fields, for names of to.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Forward map[string]CELExpression `json:"forward,omitempty"`
	// backward has expressions over the hub's fields, for names of from.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Backward map[string]CELExpression `json:"backward,omitempty"`
	// whenMissing tells what happens if all fields that are read are missing. With Skip, the default,
	// nothing is computed. With Evaluate, the expressions are evaluated, in both directions, so
	// that they can compute constants and defaults. As with a default rule, only complete
	// objects get such values, never the fragment that a client applies, and only if the parent
	// objects of the computed fields, as far as both versions have them, exist. Fields that were
	// missing come back missing, as long as the computed values are not changed.
	// +optional
	WhenMissing CELWhenMissing `json:"whenMissing,omitempty"`
}

// Derives reports whether the rule only computes the fields of one side.
func (r *CELRule) Derives() bool { return len(r.Forward) == 0 || len(r.Backward) == 0 }

// UseRule applies the rules of a group to an object: it is the same as these rules with the paths of
// the object in front of theirs.
// +kubebuilder:validation:XValidation:rule="has(self.from) == has(self.to)",message="set from and to, the paths of an object in the spoke and in the hub, or neither, for the whole object"
type UseRule struct {
	// group is the name of the group, one of ruleGroups.
	// +required
	Group RuleGroupName `json:"group"`
	// from is the path of the object in the spoke. It may end with [*], for every element of a
	// list or map.
	// +optional
	From Path `json:"from,omitempty"`
	// to is its path in the hub. Without from and to, the rules of the group are for the whole
	// object, so that several spokes can share them.
	// +optional
	To Path `json:"to,omitempty"`
}

// CELWhenMissing tells what happens to expressions if all fields that they can read are missing.
// +kubebuilder:validation:Enum=Skip;Evaluate
type CELWhenMissing string

const (
	// CELSkip computes nothing.
	CELSkip CELWhenMissing = "Skip"
	// CELEvaluate evaluates the expressions.
	CELEvaluate CELWhenMissing = "Evaluate"
)

// CELExpression is an expression of the Common Expression Language with the
// libraries that the API server has for validation rules.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=2048
type CELExpression string
