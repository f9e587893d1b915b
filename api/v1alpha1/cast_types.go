// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// CastType tells how a string represents a value.
// +kubebuilder:validation:Enum=Integer;Number;Seconds;Milliseconds;Quantity;Boolean;Timestamp;List;JSON;YAML
type CastType string

const (
	// CastInteger is the integer in decimal: "8080".
	CastInteger CastType = "Integer"
	// CastNumber is a number that may have a fraction: "0.5".
	CastNumber CastType = "Number"
	// CastSeconds is a duration with this number of seconds: "1h30m0s".
	CastSeconds CastType = "Seconds"
	// CastMilliseconds is a duration with this number of milliseconds: "1.5s".
	CastMilliseconds CastType = "Milliseconds"
	// CastQuantity is a quantity of Kubernetes with this number of units: "2Gi".
	CastQuantity CastType = "Quantity"
	// CastBoolean is the boolean: "true".
	CastBoolean CastType = "Boolean"
	// CastTimestamp is the time this number of seconds after 1970, by RFC 3339 and in UTC:
	// "2026-01-02T03:04:05Z".
	CastTimestamp CastType = "Timestamp"
	// CastList is a list of strings with a separator between them: "a,b".
	CastList CastType = "List"
	// CastJSON is an object or a list as JSON: "{\"a\":[1]}".
	CastJSON CastType = "JSON"
	// CastYAML is an object or a list as YAML: "a: [1]".
	CastYAML CastType = "YAML"
)

// CastRule writes a number, a boolean, a list or an object as a string, and reads the string. The
// schemas determine which of the two is the string. A missing value stays missing, and null
// stays null. A string in another spelling, such as the duration "90s", the quantity "2048Mi"
// or YAML with comments, is also preserved. A string that is no such value, such as "007", or
// "1.5s" for whole seconds, is only preserved: the other version has no value then.
// +kubebuilder:validation:XValidation:rule="has(self.unit) == (self.as == 'Quantity')",message="set unit, such as Mi or 1, for a Quantity, and for no other cast"
// +kubebuilder:validation:XValidation:rule="has(self.separator) == (self.as == 'List')",message="set separator, such as a comma, for a List, and for no other cast"
type CastRule struct {
	// from is the path in the spoke.
	// +required
	From Path `json:"from"`
	// to is the path in the hub.
	// +required
	To Path `json:"to"`
	// as tells how the string is written: Integer in decimal ("8080"), Number with a
	// fraction ("0.5"), Seconds and Milliseconds as a duration ("1h30m0s" is 5400
	// seconds), Quantity as a quantity of Kubernetes ("2Gi" is 2048 of the unit Mi),
	// Timestamp by RFC 3339 ("2026-01-02T03:04:05Z", in seconds since 1970), Boolean
	// ("true"), List as strings with a separator ("a,b"), JSON and YAML as a text in these
	// languages. The other field is of type number for Number, boolean for Boolean, a list of
	// strings for List, an object, a list or a field without a type for JSON and YAML, and
	// integer otherwise.
	// +required
	As CastType `json:"as"`
	// unit is what the integer of a Quantity counts: 1, m, k, M, G, T, Ki, Mi, Gi or Ti.
	// +optional
	// +kubebuilder:validation:Enum="1";m;k;M;G;T;Ki;Mi;Gi;Ti
	Unit string `json:"unit,omitempty"`
	// separator is between the strings of a List. The empty list is the empty string.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	Separator string `json:"separator,omitempty"`
}
