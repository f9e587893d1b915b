// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// Exclusion selects the elements of a list that the other version cannot have: those without a field.
type Exclusion struct {
	// Without is the path of the field in the element, with the names of the hub. Null counts as missing.
	Without Path `json:"without"`
	// Values are the texts of the field that the other version can have; none if it can have any value.
	Values []string `json:"values,omitempty"`
}
