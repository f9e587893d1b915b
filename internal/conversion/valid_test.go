// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestValid cuts and changes a text at every byte. encoding/json has the same
// grammar, but replaces what is not UTF-8.
func TestValid(t *testing.T) {
	text := []byte(` {"a":[1,-0.5e+3, "eight by" , "é\"\\\u00e9", true,false,null,{},[ ]],"":{"long name of more than a word":[[{"x":0}]]}} `)
	check := func(text []byte) {
		t.Helper()
		err := Valid(text)
		if want := json.Valid(text) && utf8.Valid(text); (err == nil) != want {
			t.Errorf("Valid(%q) = %v, want valid %t", text, err, want)
		}
	}
	check(text)
	for i := range text {
		check(text[:i])
		check(text[i:])
		check(slices.Delete(slices.Clone(text), i, i+1))
		for b := range 256 {
			changed := slices.Clone(text)
			changed[i] = byte(b)
			check(changed)
		}
	}
}

func TestValidDepth(t *testing.T) {
	for _, brackets := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		for depth, valid := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
			text := strings.Repeat(brackets[0], depth) + "0" + strings.Repeat(brackets[1], depth)
			if err := Valid([]byte(text)); (err == nil) != valid {
				t.Errorf("%d times %s: %v, want valid %t", depth, brackets[0], err, valid)
			}
		}
	}
}
