// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "testing"

func TestValid(t *testing.T) {
	for text, valid := range map[string]bool{
		`{"a":[1,"é\"",null]}`: true,
		` 9007199254740993 `:   true,
		`{"a":1,}`:             false,
		`{"a":01}`:             false,
		"\"\xff\"":             false,
		`{} {}`:                false,
		``:                     false,
	} {
		if err := Valid([]byte(text)); (err == nil) != valid {
			t.Errorf("Valid(%q) = %v, want valid %t", text, err, valid)
		}
	}
}
