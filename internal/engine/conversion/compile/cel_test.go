// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestElements: an expression counts the elements that an object can have, in lists in lists.
func TestElements(t *testing.T) {
	const lists = `a: {type: array, items: {type: object, properties: {b: {type: array, items: {type: object, properties: {c: {type: array, items: {type: object, properties: {%s: {type: string}}}}}}}}}}`
	v1, v2 := fmt.Sprintf(lists, "old"), fmt.Sprintf(lists, "renamed")
	rule := `{cel: {from: {o: ".a[*].b[*].c[*].old"}, to: {r: ".a[*].b[*].c[*].renamed"}, forward: {r: %s}, backward: {o: "self.?r.orValue('')"}}}`
	for _, test := range []struct{ forward, elements string }{
		{`"self.o == '' ? 'none' : self.o"`, ""},
		{`"self.o.lowerAscii() + self.o.upperAscii() + self.o.trim()"`, "157286"},
	} {
		var got string
		for _, warning := range between(t, v1, v2, fmt.Sprintf(rule, test.forward)).Warnings {
			if _, after, found := strings.Cut(warning, "for each of up to "); found {
				got, _, _ = strings.Cut(after, " elements")
			}
		}
		expect.Equal(t, "number of elements for which this may be too expensive: "+test.forward, test.elements, got)
	}
}
