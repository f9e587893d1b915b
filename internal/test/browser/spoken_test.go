//go:build browser

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// spoken is an element in the accessibility tree.
type spoken struct {
	role, name string
	level      int
}

// hear returns the elements of the accessibility tree in order, without ignored ones.
func (b *tab) hear() []spoken {
	b.t.Helper()
	tree, err := chromedp.Call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	expect.NoError(b.t, err)
	var heard []spoken
	drawn := map[accessibility.NodeID]bool{}
	for _, node := range tree.Nodes {
		if node.Ignored {
			continue
		}
		inside := drawn[node.ParentID]
		if inside && textOf(node.Name) != "" {
			b.t.Errorf("%q is said of a drawing, besides the drawing's own name", textOf(node.Name))
		}
		drawn[node.NodeID] = inside || textOf(node.Role) == "image"
		s := spoken{role: textOf(node.Role), name: textOf(node.Name)}
		for _, property := range node.Properties {
			if property.Name == accessibility.PropertyNameLevel {
				_ = json.Unmarshal(property.Value.Value, &s.level) // a number, or no level
			}
		}
		heard = append(heard, s)
	}
	return heard
}

func textOf(value *accessibility.Value) (text string) {
	if value != nil {
		_ = json.Unmarshal(value.Value, &text) // a text, or none
	}
	return text
}

// TestSpoken checks the screen reader's view of a report on a large screen and on a phone, where
// tables have another layout.
func TestSpoken(t *testing.T) {
	for _, width := range []int64{360, 1400} {
		heard := open(t, "cluster", window(width)).hear()
		names := map[string][]string{}
		for _, s := range heard {
			names[s.role] = append(names[s.role], s.name)
		}
		for role, want := range map[string][]string{
			"RootWebArea": {"CronTab: conversion report"},
			"banner":      {""}, "main": {""}, "contentinfo": {""},
			"navigation": {"Contents"},
		} {
			if !slices.Equal(names[role], want) {
				t.Errorf("at %d, there are %q of the role %s, want %q", width, names[role], role, want)
			}
		}
		for _, role := range []string{"region", "table", "image", "link", "heading", "columnheader", "rowheader"} {
			if len(names[role]) == 0 || slices.Contains(names[role], "") {
				t.Errorf("at %d, some of the role %s have no name: %q", width, role, names[role])
			}
		}
		for _, table := range []string{"Fields of v1 and of v2 that rules connect", "Conditions of the policy"} {
			if !slices.Contains(names["table"], table) {
				t.Errorf("at %d, there is no table %q among %q", width, table, names["table"])
			}
		}
		checkHeadings(t, heard)
	}
}

// checkHeadings requires exactly one heading of level 1, and no skipped level.
func checkHeadings(t *testing.T, heard []spoken) {
	t.Helper()
	last, first := 0, 0
	for _, s := range heard {
		if s.role != "heading" {
			continue
		}
		if s.level > last+1 {
			t.Errorf("the heading %q is of level %d, after one of level %d", s.name, s.level, last)
		}
		if last = s.level; last == 1 {
			first++
		}
	}
	if first != 1 {
		t.Errorf("there are %d headings of the first level", first)
	}
}

// TestDrawingsHaveWords finds each link of a drawing also in a table, for screen readers and
// phones.
func TestDrawingsHaveWords(t *testing.T) {
	b := open(t, "cluster", window(1400))
	for _, tag := range ask[[]string](b, `[...document.querySelectorAll('.map .tag:not(.same)')].map(e => e.textContent)`) {
		if !ask[bool](b, `[...document.querySelectorAll('table .tag')].some(e => e.textContent === `+quote(tag)+`)`) {
			t.Errorf("no table has %q", tag)
		}
	}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a text can be encoded
	return string(quoted)
}
