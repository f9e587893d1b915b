//go:build browser

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var update = flag.Bool("update", false, "write the pictures of the documentation")

// The program and the static page, which make browser builds.
const (
	program = "../../../bin/conversion-operator"
	static  = "../../../bin/playground"
)

// playgrounds are the two ways in which users get the page, and their addresses.
var playgrounds = map[string]func(t *testing.T, arguments ...string) string{"command": serve, "static page": serveStatic}

// serve starts the command, and returns the address that it prints.
func serve(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command(program, append([]string{"playground"}, arguments...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatalf("%v: make browser builds the program", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := command.Wait(); err != nil {
			t.Errorf("the command ends with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), "The playground is at ")
	if !found {
		t.Fatalf("it prints %q, %v", line, err)
	}
	return url
}

// serveStatic serves the static page, as a site does.
func serveStatic(t *testing.T, _ ...string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(static, "engine.wasm.gz")); err != nil {
		t.Fatalf("%v: make browser builds the page", err)
	}
	site := httptest.NewServer(http.FileServer(http.Dir(static)))
	t.Cleanup(site.Close)
	return site.URL + "/index.html"
}

// until waits until a condition of the page is true. A page that never gets there is cut off, and shown.
func (b *tab) until(condition string) {
	b.t.Helper()
	_, err := chromedp.Run(b, chromedp.Evaluate[bool](
		`new Promise(done => { const wait = () => (`+condition+`) ? done(true) : setTimeout(wait, 20); wait(); })`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("until %s: %v; the browser says %q", condition, err, b.said)
	}
}

// checked waits until the page says this about the texts.
func (b *tab) checked(says string) {
	b.t.Helper()
	b.until(`document.querySelector('#state')?.dataset.pending === 'false' && document.querySelector('#state').innerText.includes(` + quote(says) + `)`)
}

// press presses a button or a tab.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.until(`document.querySelector(` + quote(selector) + `)?.checkVisibility()`)
	b.do(chromedp.Click(selector))
}

// editor is the content of an editor, which is in a shadow tree.
func editor(name string) string {
	return `document.querySelector('#panel-` + name + ` .editor').shadowRoot.querySelector('.cm-content')`
}

// write replaces what an editor has, by keys and text as a person would.
func (b *tab) write(name, text string) {
	b.t.Helper()
	b.press("#tab-" + name)
	b.do(evaluate(editor(name)+`.focus()`), chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent(kb.Delete))
	b.insert(text)
}

func (b *tab) insert(text string) {
	b.t.Helper()
	b.do(command(input.InsertText, input.InsertTextParams{Text: text}))
}

// policyText returns the policy as the page would save it.
func (b *tab) policyText() string {
	b.t.Helper()
	b.do(evaluate(`window.saved = undefined; URL.createObjectURL = blob => { blob.text().then(text => window.saved = text); return '#saved'; }`))
	b.press("#save")
	b.until(`window.saved !== undefined`)
	return ask[string](b, `window.saved`)
}

const start = `apiVersion: conversion-operator.io/v1alpha1
kind: ConversionPolicy
metadata:
  name: crontabs.stable.example.com
spec:
  converter:
    type: Declarative
    declarative:
      hub: v2
      spokes:
      - version: v1
        rules:
        - `

// TestNewcomer goes from two schemas to a tested policy.
func TestNewcomer(t *testing.T) {
	for name, serve := range playgrounds {
		t.Run(name, func(t *testing.T) {
			b := visit(t, serve(t), window(1400))
			b.checked("Nothing is lost")
			text := ask[string](b, `document.body.innerText`)
			expect.Equal(t, "the page still says that it starts", false, strings.Contains(text, "The playground starts"))

			// Without a policy, the page drafts one.
			b.write("policy", "")
			b.checked("1 problem")
			b.until(`document.querySelector('#panel-policy .problems').innerText.includes('there is no ConversionPolicy')`)
			b.press("#tab-suggestions")
			b.press("#suggest")
			b.press("#use")
			b.checked("Nothing is lost")
			// A field without a place in the other version is seen at once.
			b.press("#tab-fields")
			b.until(`document.querySelector('.unplaced').innerText.includes('v1:.spec.cronSpec')`)

			// A rule, with the help of completions.
			b.write("policy", start)
			b.insert("fo")
			b.do(chromedp.KeyEvent(" ", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
			b.until(`document.querySelector('#panel-policy .editor').shadowRoot.querySelector('.cm-tooltip-autocomplete [aria-selected]')?.innerText.startsWith('format')`)
			// The editor ignores keys for 75 ms, which people press before they see the options.
			ask[bool](b, `new Promise(done => setTimeout(() => done(true), 100))`)
			// As a keyboard does: what the page does with the key decides whether it is also a character.
			b.do(command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}))
			b.insert("{from: .spec.cronSpecs, template: '{min} {hour} {dayOfMonth} {month} {dayOfWeek}', to: {min: .spec.min, hour: .spec.hour, dayOfMonth: .spec.dayOfMonth, month: .spec.month, dayOfWeek: .spec.dayOfWeek}}\n")
			b.checked("1 problem")
			b.until(`document.querySelector('.stale')`)
			line := ask[string](b, `document.querySelector('#panel-policy .problems button').innerText`)
			expect.Equal(t, "the problem is in", "line 13", line)
			b.write("policy", strings.Replace(b.policyText(), "cronSpecs", "cronSpec", 1))
			b.checked("Nothing is lost")
			expect.Equal(t, "curves leave .cronSpec", 5, ask[int](b, `document.querySelectorAll('path.translated[data-from="1"]').length`))
			b.clean("strays")

			// Objects at the other version, and what made each field.
			b.press("#tab-conversions")
			b.until(`document.querySelector('.conversion .back').innerText === 'Comes back to v1 unchanged.'`)
			at2 := ask[string](b, `document.querySelector('.conversion pre').innerText`)
			expect.Contains(t, "the object at v2", at2, "apiVersion: stable.example.com/v2", "\n  min: ")
			made := ask[string](b, `[...document.querySelectorAll('.conversion tbody tr')].find(row => row.innerText.includes('.spec.hour')).innerText`)
			expect.Contains(t, "what explains .spec.hour", made, "by a rule format", ".spec.cronSpec")
			// The name of the rule leads to it.
			b.do(evaluate(`document.querySelector('.conversion tbody button').click()`))
			b.until(`document.activeElement === document.querySelector('#panel-policy .editor')`)

			// Objects that cannot be read are a problem, and nothing else changes.
			b.write("objects", "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: odd, namespace: a}\nspec: {cronSpec: hello, image: x}\n---\n[1]\n")
			b.checked("1 problem")
			b.write("objects", "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: odd, namespace: a}\nspec: {cronSpec: hello, image: x}\n")
			b.checked("Nothing is lost")
			b.press("#tab-conversions")
			b.until(`document.querySelector('.conversion')?.innerText.includes('it differs from what')`)

			b.press("#tab-tests")
			b.until(`document.querySelector('#panel-tests').innerText.includes('1 object from the page')`)
			if got, want := b.policyText(), "template: '{min} {hour} {dayOfMonth} {month} {dayOfWeek}'"; !strings.HasPrefix(got, start) || !strings.Contains(got, want) {
				t.Errorf("saved %q", got)
			}
			expect.Equal(t, "what the browser says", "[]", fmt.Sprintf("%q", b.said))
		})
	}
}

// TestAccept accepts a suggested rule, which becomes a line of the policy.
func TestAccept(t *testing.T) {
	for name, serve := range playgrounds {
		t.Run(name, func(t *testing.T) {
			b := visit(t, serve(t), window(1400))
			b.checked("Nothing is lost")
			crd, err := os.ReadFile("../../../config/samples/crontab-cronspec/3-crd-both.yaml")
			expect.NoError(t, err)
			text := strings.Replace(string(crd), "owner: {type: string}", "owner: {type: string, description: who owns it}", 1)
			b.write("crd", strings.Replace(text, "timeZone: {type: string}", "ownerName: {type: string, description: who owns it}", 1))
			b.until(`document.querySelector('#panel-fields .unplaced')?.innerText.includes('v2:.spec.ownerName')`)
			before := b.policyText()
			b.press("#tab-suggestions")
			b.press("#suggest")
			b.press(".accept")
			b.until(`!document.querySelector('.accept')`)
			b.until(`!document.querySelector('#panel-fields .unplaced')`) // the rule is a part of what was checked
			b.checked("Nothing is lost")
			want := strings.Replace(before, "\n  migration:", "\n        - move: {from: .spec.owner, to: .spec.ownerName}\n  migration:", 1)
			expect.Equal(t, "the policy", want, b.policyText())
		})
	}
}

// TestPlaygroundLooks checks each part of the page on phones and on large screens, in both colour schemes.
func TestPlaygroundLooks(t *testing.T) {
	url := serve(t)
	for _, width := range []int64{360, 768, 1400} {
		for _, colours := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(width, " ", colours), func(t *testing.T) {
				b := visit(t, url, window(width), scheme(colours))
				b.checked("Nothing is lost")
				for _, part := range []string{"fields", "conversions", "suggestions", "tests"} {
					b.press("#tab-" + part)
					if part == "suggestions" {
						b.press("#suggest")
						b.until(`!document.querySelector('#suggest').disabled`)
					}
					for _, check := range []string{"sideways", "overlaps", "pale"} {
						b.clean(check)
					}
				}
				b.write("policy", "a: b")
				b.checked("1 problem")
				b.clean("sideways")
				b.clean("pale")
			})
		}
	}
}

// TestPlaygroundKeyboard reaches everything by keys, and leaves the editor again.
func TestPlaygroundKeyboard(t *testing.T) {
	b := visit(t, serve(t), window(1400))
	b.checked("Nothing is lost")
	var reached []string
	for range 30 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := ask[struct {
			Name     string `json:"name"`
			Outlined bool   `json:"outlined"`
			Seen     bool   `json:"seen"`
		}](b, `focused()`)
		if at.Name == "" && len(reached) > 5 {
			break
		}
		reached = append(reached, at.Name)
	}
	for _, want := range []string{"Copy policy", "Save policy", "Policy", "Fields 2"} {
		if !slices.ContainsFunc(reached, func(name string) bool {
			return strings.HasPrefix(strings.ReplaceAll(name, " ", ""), strings.ReplaceAll(want, " ", ""))
		}) {
			t.Errorf("the keyboard does not reach %s, only %q", want, reached)
		}
	}
	b.do(chromedp.Focus("#tab-fields"), chromedp.KeyEvent(kb.ArrowRight))
	b.until(`document.activeElement.id === 'tab-conversions' && document.querySelector('#panel-conversions').checkVisibility()`)
	b.do(chromedp.KeyEvent(kb.End))
	b.until(`document.activeElement.id === 'tab-tests' && !document.querySelector('#panel-conversions').checkVisibility()`)
	b.do(evaluate(editor("policy")+`.focus()`), chromedp.KeyEvent(kb.Tab))
	b.until(`document.activeElement !== document.querySelector('#panel-policy .editor')`)
}

// TestPlaygroundSpoken checks what a screen reader says.
func TestPlaygroundSpoken(t *testing.T) {
	b := visit(t, serve(t), window(1400))
	b.checked("Nothing is lost")
	for _, part := range []string{"fields", "conversions", "suggestions", "tests"} {
		b.press("#tab-" + part)
		heard := b.hear()
		names := byRole(heard)
		for _, want := range []struct{ role, name string }{
			{"textbox", "ConversionPolicy"}, {"tab", "Schemas"}, {"tab", "Conversions"}, {"status", ""}, {"button", "Save policy"}, {"main", ""}, {"contentinfo", ""},
		} {
			if !slices.Contains(names[want.role], want.name) {
				t.Errorf("in %s, there is no %s %q among %q", part, want.role, want.name, names[want.role])
			}
		}
		for _, role := range []string{"button", "tab", "tabpanel", "region", "combobox", "textbox", "heading", "image"} {
			if slices.Contains(names[role], "") {
				t.Errorf("in %s, some of the role %s have no name: %q", part, role, names[role])
			}
		}
		checkHeadings(t, heard)
	}
}

// TestPlaygroundAlone sees each request of the page, tries what its Content-Security-Policy forbids, and asks as another
// page would.
func TestPlaygroundAlone(t *testing.T) {
	for name, serve := range playgrounds {
		t.Run(name, func(t *testing.T) {
			url := serve(t)
			b := visit(t, url, window(1400))
			b.checked("Nothing is lost")
			origin := url[:strings.LastIndex(url, "/")]
			b.lock.Lock()
			for _, request := range b.requests {
				if !strings.HasPrefix(request, origin) && !strings.HasPrefix(request, "data:") {
					t.Errorf("it asked for %s", request)
				}
			}
			b.lock.Unlock()
			b.do(evaluate(`document.title = 'before';
				const script = document.createElement('script'); script.textContent = 'document.title = "after"'; document.body.append(script);
				document.body.insertAdjacentHTML('beforeend', '<a id="pressed" onclick="document.title = 1">x</a>'); document.getElementById('pressed').click();`))
			expect.Equal(t, "a script in the page ran: the title", "before", ask[string](b, `document.title`))
			if ask[bool](b, `fetch('http://127.0.0.1:9/').then(() => true, () => true)`) && !slices.ContainsFunc(b.said, func(text string) bool { return strings.Contains(text, "Content Security Policy") }) {
				t.Errorf("the browser says nothing about the policy: %q", b.said)
			}
			expect.Equal(t, "the token stays in the address", false, strings.Contains(ask[string](b, `location.href`), "token"))
		})
	}
	url := serve(t)
	other := visit(t, serveStatic(t))
	for _, path := range []string{"api/start", "api/check"} {
		got := ask[string](other, `fetch(`+quote(url[:strings.LastIndex(url, "/")+1]+path)+`, {method: `+quote(map[bool]string{true: "GET", false: "POST"}[path == "api/start"])+`, mode: 'no-cors'}).then(() => 'answered', () => 'refused')`)
		expect.Equal(t, "another page that asks for "+path, "refused", got)
	}
}

// TestPlaygroundPictures takes the pictures of the documentation with -update, and otherwise only sees that they are
// there.
func TestPlaygroundPictures(t *testing.T) {
	for _, part := range []string{"fields", "conversions"} {
		file := "../../../api/docs/images/playground-" + part + ".png"
		if !*update {
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
			continue
		}
		b := visit(t, serve(t), chromedp.EmulateViewport(1280, 800), scheme("light"))
		b.checked("Nothing is lost")
		b.press("#tab-" + part)
		picture, err := chromedp.Run(b, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(file, picture, 0o600)
		}
		expect.NoError(t, err)
	}
}
