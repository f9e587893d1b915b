//go:build browser

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var reports = []string{"crontab-cronspec", "crontab-hostport", "cluster", "hostile", "wide"}

// TestLayout checks widths from phones to large screens.
func TestLayout(t *testing.T) {
	for _, name := range reports {
		for _, width := range []int64{360, 768, 1400} {
			t.Run(fmt.Sprint(name, " at ", width), func(t *testing.T) {
				b := open(t, name, window(width))
				b.clean("sideways")
				b.clean("overlaps")
				expect.Equal(t, "that drawings are shown", (width > 700), ask[bool](b, `document.querySelector('.map').checkVisibility()`))
				if width > 700 {
					b.clean("strays")
				}
			})
		}
	}
}

// TestText compares the visible text of a sample report.
func TestText(t *testing.T) {
	b := open(t, "crontab-cronspec", window(1400))
	text := ask[string](b, `document.body.innerText`)
	expect.Contains(t, "the report", text,
		"CronTab", "Nothing is lost", "v1 → v2\t", "Preserved", ".cronSpec", "1 format", ".spec.dayOfWeek",
		"spec.converter.declarative.spokes[0].rules[0]", "template: '{min} {hour} {dayOfMonth} {month} {dayOfWeek}'",
		"3 objects from objects.yaml")
	// One field of v1 becomes five fields of v2, so five curves start at one row.
	expect.Equal(t, "curves leave .cronSpec", 5, ask[int](b, `document.querySelectorAll('path.translated[data-from="1"]').length`))
	expect.Equal(t, "the title", "CronTab: conversion report", ask[string](b, `document.title`))
}

func TestColours(t *testing.T) {
	for _, name := range []string{"cluster", "crontab-hostport", "hostile"} {
		for colours, bright := range map[string]bool{"light": true, "dark": false} {
			t.Run(name+" in "+colours, func(t *testing.T) {
				b := open(t, name, window(1400), scheme(colours))
				b.clean("pale")
				expect.Equal(t, "the page is bright", bright, ask[float64](b, `brightness()`) > 0.5)
			})
		}
	}
	// Readers who cannot see colours distinguish lines by dashes, width, and the words beside them.
	b := open(t, "cluster", window(1400))
	for _, kind := range []string{"copied", "translated", "computed", "preserved", "dropped", "same"} {
		look := fmt.Sprintf(`[...document.querySelectorAll('.map .line')].map(e => getComputedStyle(e)).map(s => s.strokeDasharray + ' ' + s.strokeWidth)[
			[...document.querySelectorAll('.map .line')].findIndex(e => e.classList.contains(%q))]`, kind)
		others := fmt.Sprintf(`[...document.querySelectorAll('.map .line:not(.%s)')].map(e => getComputedStyle(e)).map(s => s.strokeDasharray + ' ' + s.strokeWidth)`, kind)
		if own := ask[string](b, look); slices.Contains(ask[[]string](b, others), own) {
			t.Errorf("lines of the kind %s are drawn like others: %s", kind, own)
		}
	}
}

// TestAlone opens every report as a file: the page makes no network request, and the browser
// reports no error.
func TestAlone(t *testing.T) {
	for _, name := range reports {
		t.Run(name, func(t *testing.T) {
			b := open(t, name)
			b.clean("broken")
			// The page has finished its own work by the next frame.
			ask[bool](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
			b.lock.Lock()
			defer b.lock.Unlock()
			for _, url := range b.requests {
				if !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "file://") && !strings.HasSuffix(url, name+".html") {
					t.Errorf("it asked for %s", url)
				}
			}
			expect.Equal(t, "requests are seen", true, len(b.requests) > 0)
			expect.Equal(t, "what the browser says", "[]", fmt.Sprintf("%q", b.said))
		})
	}
}

// TestPolicyHolds adds to a report what its Content-Security-Policy forbids, as if escaping had
// failed.
func TestPolicyHolds(t *testing.T) {
	b := open(t, "crontab-hostport")
	b.do(evaluate(`
		document.body.insertAdjacentHTML('beforeend', '<img src="http://127.0.0.1:9/x.png"><p id="styled" style="color: red">x</p><a id="pressed" onclick="document.title = 1">x</a>');
		document.getElementById('pressed').click();
		const script = document.createElement('script'); script.textContent = 'document.title = 2'; document.body.append(script);`))
	ask[bool](b, `new Promise(done => { const wait = () => document.images[0].complete ? done(true) : requestAnimationFrame(wait); wait(); })`)
	expect.Equal(t, "a script ran: the title", "CronTab: conversion report", ask[string](b, `document.title`))
	if color := ask[string](b, `getComputedStyle(document.getElementById('styled')).color`); color == "rgb(255, 0, 0)" {
		t.Error("a style was taken that is not in the style sheet")
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if !slices.ContainsFunc(b.said, func(said string) bool {
		return strings.Contains(said, "violates the following Content Security Policy")
	}) {
		t.Errorf("the browser says nothing of the policy: %q", b.said)
	}
}

func TestPaper(t *testing.T) {
	for _, name := range []string{"cluster", "wide"} {
		b := open(t, name, window(718), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
		b.clean("hidden")
		b.clean("sideways")
		printed := ask[bool](b, `document.querySelector('nav').checkVisibility()`)
		expect.Equal(t, name+": contents are printed, which lead nowhere on paper", false, printed)
	}
}

// TestKeyboard navigates a report with the Tab key.
func TestKeyboard(t *testing.T) {
	type stop struct {
		Name           string
		Outlined, Seen bool
	}
	for _, width := range []int64{360, 1400} {
		b := open(t, "cluster", window(width))
		want := ask[[]string](b, `stops()`)
		for i, name := range want {
			b.do(chromedp.KeyEvent(kb.Tab))
			if got := ask[stop](b, `focused()`); got != (stop{name, true, true}) {
				t.Fatalf("at %d, stop %d is %+v, want %q, outlined and seen", width, i, got, name)
			}
		}
		expect.Equal(t, "the first stop", "Skip to the content", want[0])
		b.do(chromedp.KeyEvent(kb.Tab))
		if got := ask[stop](b, `focused()`); slices.Contains(want[1:], got.Name) {
			t.Errorf("after the last stop the keyboard is caught at %q", got.Name)
		}
	}
	b := open(t, "wide", window(1400))
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	expect.Equal(t, "the first link leads to", "content", ask[string](b, `document.activeElement.id`))
	b.do(chromedp.Focus(`.mapping > details:last-of-type > summary`), chromedp.KeyEvent(kb.Enter))
	opens := ask[bool](b, `document.querySelector('.mapping > details:last-of-type').open`)
	expect.Equal(t, "Enter opens what is the same in both versions", true, opens)
}

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

// byRole returns the names of the elements of each role.
func byRole(heard []spoken) map[string][]string {
	names := map[string][]string{}
	for _, s := range heard {
		names[s.role] = append(names[s.role], s.name)
	}
	return names
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
		names := byRole(heard)
		for role, want := range map[string][]string{
			"RootWebArea": {"CronTab: conversion report"},
			"banner":      {""}, "main": {""}, "contentinfo": {""},
			"navigation": {"Contents"},
		} {
			expect.Equal(t, fmt.Sprintf("at %d, names of the role %s", width, role), want, names[role])
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
	expect.Equal(t, "headings of the first level", 1, first)
}

// TestDrawingsHaveWords finds each link of a drawing also in a table, for screen readers and
// phones.
func TestDrawingsHaveWords(t *testing.T) {
	b := open(t, "cluster", window(1400))
	for _, tag := range ask[[]string](b, `[...document.querySelectorAll('.map .tag:not(.same)')].map(e => e.textContent)`) {
		has := ask[bool](b, `[...document.querySelectorAll('table .tag')].some(e => e.textContent === `+quote(tag)+`)`)
		expect.Equal(t, "a table has "+tag, true, has)
	}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a text can be encoded
	return string(quoted)
}
