// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"testing"

	"github.com/google/cel-go/common/types"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestSample(t *testing.T) {
	for text, want := range map[string]string{
		integer: `80`, double: `80`, boolean: `true`, text: `"80"`, texts: `["80"]`, textMap: `{"sample":"80"}`, open: `80`, either: `80`,
		port: `{"name":"80","port":80,"tags":["80"]}`,
		`{type: array, items: {type: string, format: duration}}`: `["1m0s"]`,
		`{type: string, format: date-time}`:                      `"2006-01-02T15:04:05Z"`,
		`{type: string, format: date}`:                           `"2006-01-02"`,
		`{type: string, format: byte}`:                           `"ODA="`,
	} {
		s := schemaOf(t, text)
		got := Sample(s)
		expect.Equal(t, "sample of "+text, want, string(got))
		if s.Type() != "" && types.IsError(readValue(got, s)) {
			t.Errorf("%s is no value of %s", got, text)
		}
	}
}
