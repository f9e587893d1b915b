// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// A plan's canaries are made once, and another plan has others.
func TestCanariesOf(t *testing.T) {
	widgets := func() *conversion.Plan {
		return &conversion.Plan{CRD: "widgets.example.com", Group: "example.com", Kind: "Widget",
			Hub: "v2", Versions: []string{"v1", "v2"}, Spokes: []conversion.Spoke{{Version: "v1"}}}
	}
	gadgets := widgets()
	gadgets.Kind = "Gadget"
	p := NewProver()
	first, err := p.canariesOf(widgets())
	if err != nil || len(first) == 0 {
		t.Fatalf("%d canaries, error %v", len(first), err)
	}
	again, err := p.canariesOf(widgets())
	if err != nil || &first[0] != &again[0] {
		t.Errorf("the canaries were made again, error %v", err)
	}
	other, err := p.canariesOf(gadgets)
	if err != nil || cmp.Equal(first, other) {
		t.Errorf("another plan has the same canaries, error %v", err)
	}
}

// A plan that cannot be followed is no plan the next time either.
func TestCanariesOfADamagedPlan(t *testing.T) {
	damaged := &conversion.Plan{CRD: "widgets.example.com", Group: "example.com", Kind: "Widget", Hub: "v2", Versions: []string{"v1", "v2"}}
	p := NewProver()
	for range 2 {
		if _, err := p.canariesOf(damaged); err == nil {
			t.Error("there are canaries of a plan without rules")
		}
	}
}
