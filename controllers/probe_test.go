// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// The canary objects of a ruleset are created once, and another ruleset has others.
func TestCanariesOf(t *testing.T) {
	widgets := func() *conversion.Ruleset {
		return &conversion.Ruleset{CRD: "widgets.example.com", Group: "example.com", Kind: "Widget",
			Hub: "v2", Versions: []string{"v1", "v2"}, Spokes: []conversion.Spoke{{Version: "v1"}}}
	}
	gadgets := widgets()
	gadgets.Kind = "Gadget"
	p := NewProber(time.Hour)
	first, err := p.canariesOf(widgets())
	if err != nil || len(first) == 0 {
		t.Fatalf("%d canary objects, error %v", len(first), err)
	}
	again, err := p.canariesOf(widgets())
	if err != nil || &first[0] != &again[0] {
		t.Errorf("the canary objects were made again, error %v", err)
	}
	other, err := p.canariesOf(gadgets)
	if err != nil || cmp.Equal(first, other) {
		t.Errorf("another ruleset has the same canary objects, error %v", err)
	}
}

// The error of an invalid ruleset is returned each time.
func TestCanariesOfADamagedRuleset(t *testing.T) {
	damaged := &conversion.Ruleset{CRD: "widgets.example.com", Group: "example.com", Kind: "Widget", Hub: "v2", Versions: []string{"v1", "v2"}}
	p := NewProber(time.Hour)
	for range 2 {
		if _, err := p.canariesOf(damaged); err == nil {
			t.Error("there are canary objects of a ruleset without rules")
		}
	}
}

// TestVerify: a pod is probed with the next caBundle first, and with the current one only if it
// does not serve a certificate of the next authority yet. A pod with a proof for the next caBundle
// is not probed again after that becomes the current one.
func TestVerify(t *testing.T) {
	cases := map[string]struct {
		successor string
		accepts   map[string]probe.Reason
		want      *observed.Proof
		asked     []string
	}{
		"no rotation": {"", map[string]probe.Reason{"A": ""}, &observed.Proof{}, []string{"A"}},
		"not that far": {"B", map[string]probe.Reason{"B": probe.ReasonTLSVerificationFailed, "A": ""},
			&observed.Proof{}, []string{"B", "A"}},
		"that far": {"B", map[string]probe.Reason{"B": ""}, &observed.Proof{Successor: true}, []string{"B"}},
		"that far, and converts wrongly": {"B", map[string]probe.Reason{"B": probe.ReasonCanaryFailed},
			&observed.Proof{Reason: "CanaryFailed", Message: "by B", Successor: true}, []string{"B"}},
		"out of reach": {"B", map[string]probe.Reason{"B": probe.ReasonUnreachable},
			&observed.Proof{Reason: "Unreachable", Message: "by B"}, []string{"B"}},
		"served by neither": {"B", map[string]probe.Reason{"B": probe.ReasonTLSVerificationFailed, "A": probe.ReasonTLSVerificationFailed},
			&observed.Proof{Reason: "TLSVerificationFailed", Message: "by A"}, []string{"B", "A"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			p := NewProber(time.Hour)
			p.probe = func(_ context.Context, target probe.Target) (probe.Result, error) {
				asked = append(asked, string(target.CABundle))
				if reason := c.accepts[string(target.CABundle)]; reason != "" {
					return probe.Result{}, &probe.Error{Reason: reason, Message: "by " + string(target.CABundle)}
				}
				return probe.Result{}, nil
			}
			by := p.rulesetRequests(observed.Pod{UID: "pod"}, probe.Target{}, probeScope{leaf: []byte("leaf"), lasts: time.Hour})
			got := p.verify(t.Context(), "pod", plan.Trust{CABundle: []byte("A"), Successor: []byte(c.successor)}, by)
			expect.Equal(t, "proof", c.want, got)
			expect.Equal(t, "asked by", c.asked, asked)
			before := len(asked)
			p.verify(t.Context(), "pod", plan.Trust{CABundle: []byte("B")}, by)
			if again := len(asked) > before; c.want.Successor && c.want.Reason == "" && again {
				t.Error("the pod is asked again by what it has proven")
			}
		})
	}
}
