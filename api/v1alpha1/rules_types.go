// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Rule is one two-way rule. Exactly one member is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.move), has(self.format), has(self.default), has(self.values), has(self.drop), has(self.wrap), has(self.cast), has(self.index), has(self.cel)].filter(x, x).size() == 1",message="set exactly one of move, format, default, values, drop, wrap, cast, index, cel"
type Rule struct {
	// move has one value at different paths in the two versions.
	// +optional
	Move *MoveRule `json:"move,omitempty"`

	// format has one string in the spoke that is several fields in the hub.
	// +optional
	Format *FormatRule `json:"format,omitempty"`

	// default gives a value to a field that only one of the two versions has.
	// +optional
	Default *DefaultRule `json:"default,omitempty"`

	// values has one string that is written otherwise in the two versions, by a table.
	// +optional
	Values *ValuesRule `json:"values,omitempty"`

	// drop gives a field of one of the two versions up: the one rule that loses.
	// +optional
	Drop *DropRule `json:"drop,omitempty"`

	// wrap has one value in one of the two versions that is a list in the other.
	// +optional
	Wrap *WrapRule `json:"wrap,omitempty"`

	// cast has one integer in one of the two versions that is a string in the other.
	// +optional
	Cast *CastRule `json:"cast,omitempty"`

	// index has a list of objects in one of the two versions that is a map in the
	// other, by a field of the objects.
	// +optional
	Index *IndexRule `json:"index,omitempty"`

	// cel computes fields by a pair of expressions, one for either direction.
	// +optional
	CEL *CELRule `json:"cel,omitempty"`
}

// Path is a field of an object: `.spec.host`, `.spec.ports[*].name` (every
// element of a list, every value of a map), `.metadata.labels["app.kubernetes.io/name"]`.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^\.[A-Za-z_$][A-Za-z0-9_$-]*((\.[A-Za-z_$][A-Za-z0-9_$-]*)|(\["[^"\\]+"\])|(\[\*\]))*$`
type Path string

// MoveRule moves a value, a whole subtree of any type, to another path.
type MoveRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
}

// FormatRule splits and joins: the spoke's string is parsed into the hub's
// fields, and printed from them, by one template.
type FormatRule struct {
	// from is the path of the string in the spoke.
	// +required
	From Path `json:"from"`

	// template is text with named holes, `{host}:{port}`. Two holes must have
	// text between them, so that there is one way only to parse. A hole before a
	// text takes as little as it can; the last hole takes the rest.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template"`

	// to names the hub's path for every hole of the template.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	To map[string]Path `json:"to"`
}

// DefaultRule fills a field that only one of the two versions has. Only a whole
// object is filled, never a fragment that a client applies, and only where the
// object above the field, as far as both versions have it, is there. On the way
// back the value is taken away; any other value, an explicit null, and a field
// that was absent are preserved and come back as they were.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field that only the spoke has, or to, for one that only the hub has"
type DefaultRule struct {
	// from is the path of a field that only the spoke has.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field that only the hub has.
	// +optional
	To Path `json:"to,omitempty"`
	// value is what the field gets, of the field's type.
	// +required
	Value apiextensionsv1.JSON `json:"value"`
}

// DropRule gives up a field that the other version does not have: whatever it
// holds, a null or a whole subtree too, is gone once the object was converted.
// Without any rule such a field is preserved. A field of the other version that
// has the same path is preserved there.
//
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.to)",message="set from, for a field of the spoke, or to, for one of the hub"
type DropRule struct {
	// from is the path of a field of the spoke.
	// +optional
	From Path `json:"from,omitempty"`
	// to is the path of a field of the hub.
	// +optional
	To Path `json:"to,omitempty"`
}

// WrapRule makes a value the one element of a list, and the first element of a
// list the value; which of the two is the list, the schemas say. A missing value
// is a missing list, and a null a null. A list that has no element, more than
// one, or a null, is preserved and comes back whole.
type WrapRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
}

// CastType says how a string writes an integer.
//
// +kubebuilder:validation:Enum=Integer;Seconds
type CastType string

const (
	// CastInteger is the integer in decimal: "8080".
	CastInteger CastType = "Integer"
	// CastSeconds is a duration of as many seconds: "1h30m0s".
	CastSeconds CastType = "Seconds"
)

// CastRule writes an integer as a string, and reads the string; which of the two
// is the string, the schemas say. A missing value stays missing, and a null a
// null. A string that is read and not written that way, such as a duration of
// "90s", is also preserved, and one that cannot be read, such as "007" or
// "1.5s", is preserved alone: the other version has no value then.
type CastRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
	// as says how the string is written: Integer in decimal ("8080"), Seconds as
	// a duration ("1h30m0s" is 5400).
	// +required
	As CastType `json:"as"`
}

// ValuesRule translates a string by a table, and back by the same table. A value
// that the table does not have, null among them, is copied unchanged; a missing
// one stays missing. A value that would not come back unchanged is preserved.
type ValuesRule struct {
	// from is the path of the string in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path of the string in the hub.
	// +required
	To Path `json:"to"`
	// table pairs the spoke's values with the hub's. Where several values of the
	// spoke are one of the hub, the first of them is what it is on the way back.
	// +required
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Table []ValuePair `json:"table"`
}

// ValuePair is a value in the spoke, and what it is in the hub.
type ValuePair struct {
	// from is the value in the spoke.
	// +required
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// to is the value in the hub.
	// +required
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
}

// IndexRule makes a list of objects a map whose keys are one field of the
// objects, and a map such a list; which of the two is the list, the schemas say.
// A missing list is a missing map, and a null a null. A list that is not sorted
// by its keys has their order preserved, and elements that come new stand
// behind those that it knows. A list with a key that is there twice, or an
// element without one, is preserved whole: the other version has no value then.
type IndexRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
	// key is the name of the field that every object of the list has, and that
	// the objects of the map do not have: a string or an integer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// CELRule computes the hub's fields from the spoke's by expressions, and the
// spoke's from the hub's. In the expressions self is an object with the named
// fields of the version that is converted: self.packed, and has(self.packed) or
// self.?packed for one that may be missing; a null is missing too. An expression
// that reads a field that is missing, that fails or costs too much, or that gives
// null or optional.none(), gives no value: cond ? optional.of(self.a) :
// optional.none(). Results are held against the field's type, those in dyn() where
// their type is known, and each time. If all of its fields are missing nothing
// is computed. A value that would not come back unchanged is preserved.
type CELRule struct {
	// from names the spoke's fields. The names are those in the expressions:
	// letters, digits and _.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	From map[string]Path `json:"from"`
	// to names the hub's fields.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	To map[string]Path `json:"to"`
	// forward has an expression over the spoke's fields for every name of to.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Forward map[string]CELExpression `json:"forward"`
	// backward has an expression over the hub's fields for every name of from.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Backward map[string]CELExpression `json:"backward"`
}

// CELExpression is an expression of the Common Expression Language with the
// libraries that the API server has for validation rules.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=2048
type CELExpression string
