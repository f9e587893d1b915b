// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestPart(t *testing.T) {
	schema, err := Read([]byte(`{"t":"o","r":["a"],"pn":2,"p":{
		"a":{"t":"s","e":["x"]},"list":{"t":"a","in":2,"lt":"map","lk":["name"],"i":{"t":"o","r":["name"],"p":{"name":{"t":"s"},"port":{"t":"i","mx":10}}}},
		"raw":{"t":"o","er":true,"u":true},"one":{"t":"o","p":{"b":{"t":"i"},"c":{"t":"i"}},"one":[{"r":["b"]},{"r":["c"]}]}}}`))
	expect.NoError(t, err)
	for text, fits := range map[string]bool{
		`{}`: true, `{"a":"x"}`: true, `{"a":"y"}`: false, `{"unknown":1}`: false,
		`{"list":[{"name":"n"}]}`: true, `{"list":[{"port":1}]}`: true, `{"list":[{"port":11}]}`: false,
		`{"list":[{"name":"n"},{"name":"n"}]}`: false,
		`{"raw":{"apiVersion":"v1"}}`:          true, `{"raw":{"x":{}}}`: true, `{"raw":{"kind":1}}`: false,
		`{"one":{}}`: true, `{"one":{"b":"text"}}`: false,
	} {
		value, err := tree.NewArena().Read([]byte(text))
		expect.NoError(t, err)
		err = schema.PartFits(value)
		expect.Equal(t, fmt.Sprintf("that the part %s fits: %v", text, err), fits, err == nil)
		if err := schema.Fits(value); err == nil {
			t.Errorf("%s is a whole value", text)
		}
	}
}
