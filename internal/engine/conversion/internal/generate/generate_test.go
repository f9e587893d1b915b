// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestObjectsFit checks that the API server would not change the objects before it converts them.
func TestObjectsFit(t *testing.T) {
	for seed := range uint64(400) {
		c := Choose(seed%200|seed/200*Nested, nil)
		spoke, hub := c.Schemas()
		for _, props := range []*props{spoke, hub} {
			s := kindtest.Structural(t, props)
			if errs := schema.ValidateStructural(nil, s); len(errs) > 0 {
				t.Fatalf("seed %d: %v", seed, errs)
			}
			g := Objects{Choices: c}
			object := g.Object(s, "example.com/v1", "Widget")
			if errs := listtype.ValidateListSetsAndMaps(nil, s, object); len(errs) > 0 {
				t.Errorf("seed %d: %v in %s", seed, errs, Plain(object))
			}
			pruned := expect.JSON(t, Plain(object))
			pruning.Prune(pruned, s, true)
			expect.Equal(t, fmt.Sprintf("seed %d: what the API server makes of it", seed), expect.JSON(t, Plain(object)), pruned)
		}
	}
}

// TestText checks that unusual notation does not change a value.
func TestText(t *testing.T) {
	for seed := range uint64(200) {
		g := Objects{Choices: Choose(seed, nil)}
		value := g.Anything(4)
		text := string(g.Text(value))
		expect.Equal(t, fmt.Sprintf("seed %d: %s", seed, text), value, expect.JSON(t, text))
	}
}

// TestChoicesRepeat checks that the same choices give the same input, so that failures can be
// repeated.
func TestChoicesRepeat(t *testing.T) {
	world := func() string {
		c := Choose(7, []byte("some bytes"))
		spoke, hub := c.Schemas()
		rules := c.Rules(spoke, hub, func([]v1alpha1.Rule) bool { return true })
		g := Objects{Choices: c}
		return Plain([]any{spoke, hub, rules, string(g.Text(g.Object(kindtest.Structural(t, spoke), "example.com/v1", "Widget")))})
	}
	expect.Equal(t, "what the same choices give again", world(), world())
}

// TestEveryKindOfRule checks that random rules include every kind. A use is other rules.
func TestEveryKindOfRule(t *testing.T) {
	var made []string
	for seed := range uint64(50) {
		c := Choose(Expressions|Selecting|seed%2*Nested|seed, nil)
		spoke, hub := c.Schemas()
		for _, rule := range c.Rules(spoke, hub, func([]v1alpha1.Rule) bool { return true }) {
			text, err := json.Marshal(rule)
			expect.NoError(t, err)
			kind, _, _ := strings.Cut(strings.TrimPrefix(string(text), `{"`), `"`)
			made = append(made, kind)
		}
	}
	slices.Sort(made)
	var want []string
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		kind, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		want = append(want, kind)
	}
	slices.Sort(want)
	want = slices.DeleteFunc(want, func(kind string) bool { return kind == "use" })
	expect.Equal(t, "kinds of rules", want, slices.Compact(made))
}

// TestNoComputedKeys checks that no expression computes the key of a list.
func TestNoComputedKeys(t *testing.T) {
	keys := 0
	for seed := range uint64(200) {
		c := Choose(Expressions|seed, nil)
		spoke, hub := c.Schemas()
		fields := namedFields(hub, "")
		for _, rule := range c.Rules(spoke, hub, func([]v1alpha1.Rule) bool { return true }) {
			if rule.CEL == nil {
				continue
			}
			for name := range rule.CEL.Forward {
				if path := rule.CEL.To[name]; slices.ContainsFunc(fields, func(f namedField) bool { return f.path == path && isKey(fields, f) }) {
					t.Errorf("seed %d: %s is the key of a list: %s", seed, path, Plain(rule))
				}
			}
		}
		keys += len(slices.DeleteFunc(fields, func(f namedField) bool { return !isKey(fields, f) }))
	}
	if keys < 10 {
		t.Errorf("only %d fields are keys", keys)
	}
}
