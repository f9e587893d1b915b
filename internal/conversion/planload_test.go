// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// FuzzPlanLoad loads whatever is there instead of a plan, and converts by it.
func FuzzPlanLoad(f *testing.F) {
	c := rich(f)
	text, err := c.Plan().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":2,"group":"example.com","kind":"Widget","hub":"v2","versions":["v1","v2"],"spokes":[{"version":"v1","root":{"moves":[{"spoke":[],"hub":["a"]}]}}]}`))
	f.Add([]byte(`{"format":2} {}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		plan, err := conversion.Load(text)
		if err != nil {
			return
		}
		if again, err := conversion.Load(must(plan.Marshal())); err != nil || again.Hash() != plan.Hash() {
			t.Fatalf("the plan %s is not loaded again: %v", text, err)
		}
		converter, err := conversion.NewConverter(plan)
		if err != nil {
			return
		}
		for _, pair := range plan.Pairs() {
			if _, err := converter.Convert(nil, converter.Canary(pair[0], pair[1]), pair[1]); err != nil {
				continue
			}
		}
	})
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
