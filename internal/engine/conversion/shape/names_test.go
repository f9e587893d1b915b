// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReadAs reads a schema with other names, in every place that has names.
func TestReadAs(t *testing.T) {
	const text = `{"t":"o","p":{
		"l":{"t":"a","lt":"map","lk":["id"],"i":{"t":"o","r":["id"],"p":{"id":{"t":"s"},"x":{"t":"i","mx":9}}}},
		"o":{"t":"o","p":{"a":{"t":"s"},"b":{"t":"s"}},"one":[{"r":["a"]},{"r":["b"]}],"d":{"a":"x"}},
		"k":{"t":"s"}}}`
	names := &Names{
		Of: map[string]string{"l": "m", "m": "l", "k": "o", "o": "k"},
		In: map[string]*Names{
			"l": {Each: &Names{Of: map[string]string{"id": "name", "name": "id"}}},
			"o": {Of: map[string]string{"a": "c", "c": "a"}},
		},
	}
	s, err := new(Reader).ReadAs(json.RawMessage(text), names)
	expect.NoError(t, err)
	for value, fits := range map[string]bool{
		`{"m":[{"name":"a","x":9}],"k":{"c":"1"},"o":"x"}`: true,
		`{"m":[{"name":"a","x":10}]}`:                      false,
		`{"m":[{"id":"a"}]}`:                               false,
		`{"m":[{"x":1}]}`:                                  false,
		`{"m":[{"name":"a"},{"name":"a"}]}`:                false,
		`{"l":[]}`:                                         false,
		`{"k":{"a":"1"}}`:                                  false,
		`{"k":{"b":"1"}}`:                                  true,
		`{"k":{"c":"1","b":"2"}}`:                          false,
		`{"o":{}}`:                                         false,
	} {
		err := s.Fits(json.RawMessage(value))
		expect.Equal(t, fmt.Sprintf("that %s fits: %v", value, err), fits, err == nil)
	}
	expect.Equal(t, "keys", []string{"name"}, s.Field("m").Keys())
	expect.Equal(t, "sample", `{"c":"x"}`, string(s.Field("k").Sample(json.RawMessage(`"text"`))))
}
