// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func decoded(t testing.TB, text string) any {
	t.Helper()
	var value any
	if duplicates, err := kjson.UnmarshalStrict([]byte(text), &value); err != nil || len(duplicates) > 0 {
		t.Fatal(err, duplicates)
	}
	return value
}

// TestPruneAsTheAPIServer compares Prune and FillDefaults with the API server's own code, for random
// schemas and values.
func TestPruneAsTheAPIServer(t *testing.T) {
	pruned, refused := 0, 0
	for seed := range *rounds {
		c := generate.Choose(uint64(seed), nil)
		s, _, o, read := randomSchema(t, c)
		if o == nil {
			continue
		}
		next := valuesOf(c, o)
		for range 12 {
			plain := next()
			var value any
			if err := json.Unmarshal([]byte(plain), &value); err != nil || value == nil {
				continue // a number that is too large, or a null
			}
			value = decoded(t, plain)
			theirs := map[string]any{"v": runtime.DeepCopyJSONValue(value)}
			pruning.Prune(theirs, o.structural, false)
			defaulting.PruneNonNullableNullsWithoutDefaults(theirs, o.structural)
			defaulting.Default(theirs, o.structural)
			arena := tree.NewArena()
			n, err := arena.Read([]byte(plain))
			expect.NoError(t, err)
			n, isOfType := read.Prune(arena, n)
			if !isOfType {
				refused++
				if fits(read, []byte(plain)) == nil {
					t.Fatalf("seed %d: %s\n%s\nis refused, and it fits", seed, plainSchema(s), plain)
				}
				continue
			}
			value = decoded(t, string(read.FillDefaults(arena, n).JSON()))
			if !reflect.DeepEqual(value, theirs["v"]) {
				t.Fatalf("seed %d: %s\n%s\ngot  %v\nwant %v", seed, plainSchema(s), plain, value, theirs["v"])
			}
			if !reflect.DeepEqual(value, decoded(t, plain)) {
				pruned++
			}
		}
	}
	t.Logf("%d values were changed, %d are of another type", pruned, refused)
	if pruned < *rounds/10 || refused < *rounds/100 {
		t.Error("the values are too much of one kind")
	}
}

func TestAddPruned(t *testing.T) {
	s := read(t, schemaOf(t, `{type: object, properties: {a: {type: integer}, o: {type: object, properties: {b: {type: string}}}, l: {type: array, items: {type: object}},
		m: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}, u: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`))
	for name, test := range map[string]struct {
		value, other, want string
		added              bool
	}{
		"a member":               {`{"a":1}`, `{"a":2,"z":{"y":1}}`, `{"a":1,"z":{"y":1}}`, true},
		"in an object":           {`{"o":{"b":"x"}}`, `{"o":{"z":1}}`, `{"o":{"b":"x","z":1}}`, true},
		"in the values of a map": {`{"m":{"k":{},"n":{}}}`, `{"m":{"k":{"z":1},"other":{"z":1}}}`, `{"m":{"k":{"z":1},"n":{}}}`, true},
		"of a missing object":    {`{}`, `{"o":{"z":1}}`, `{}`, false},
		"of another value":       {`{"o":"x"}`, `{"o":{"z":1}}`, `{"o":"x"}`, false},
		"of a list":              {`{"l":[{}]}`, `{"l":[{"z":1}]}`, `{"l":[{}]}`, false},
		"a declared one":         {`{}`, `{"a":1,"o":{"b":"x"}}`, `{}`, false},
		"an unknown one":         {`{"u":{}}`, `{"u":{"z":1}}`, `{"u":{}}`, false},
		"nothing":                {`{}`, `[]`, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := new(tree.Arena)
			value, err := a.Read([]byte(test.value))
			expect.NoError(t, err)
			other, err := a.Read([]byte(test.other))
			expect.NoError(t, err)
			all, added := s.AddPruned(a, value, other)
			expect.Equal(t, "that something is added", test.added, added)
			expect.Equal(t, "value", test.want, string(a.Canonical(nil, all)))
		})
	}
}
