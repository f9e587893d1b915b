//go:build browser

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// programs are the possible names of Chromium.
var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

//go:embed checks.js
var checks string

// atMost bounds the time of a page before the browser counts as stuck.
const atMost = time.Minute

// chromium is the browser that all tests share.
var chromium context.Context

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run starts the browser with a temporary profile.
func run(m *testing.M) (int, error) {
	program, err := find()
	if err != nil {
		return 0, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, closeBrowser := chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		return 0, fmt.Errorf("%s does not start: %w", program, err)
	}
	chromium = browser //nolint:fatcontext // the one browser of all tests is kept once
	return m.Run(), nil
}

func find() (string, error) {
	for _, program := range programs {
		if found, err := exec.LookPath(program); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no Chromium: make browser installs it, or install one of %s", strings.Join(programs, ", "))
}

// action is a step in a tab.
type action = chromedp.Action[chromedp.Void]

// command sends one command to the browser.
func command[P, R any](of cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, of, params)
		return err
	})
}

// evaluate runs a script without a result.
func evaluate(script string) action { return chromedp.Evaluate[chromedp.Void](script) }

// tab is a report in the browser, with the browser's messages about it.
type tab struct {
	context.Context
	t *testing.T

	lock     sync.Mutex
	requests []string
	said     []string
}

// open opens a report of internal/cli/report/testdata with its style sheet, as users get it.
func open(t *testing.T, name string, actions ...action) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".html")
	expect.NoError(t, os.WriteFile(file, report(t, name), 0o600))
	return visit(t, "file://"+file, actions...)
}

// visit opens a page after actions in an empty tab.
func visit(t *testing.T, url string, actions ...action) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(chromium)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, atMost)
	t.Cleanup(cancel)
	of := &tab{Context: ctx, t: t}
	expect.NoError(t, chromedp.Listen(ctx, of.listen))
	of.do(command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}))
	of.do(append(actions, chromedp.Navigate(url), evaluate(checks))...)
	return of
}

func report(t *testing.T, name string) []byte {
	t.Helper()
	at := filepath.Join("..", "..", "cli", "report")
	text, err := os.ReadFile(filepath.Join(at, "testdata", name+".html"))
	expect.NoError(t, err)
	style, err := os.ReadFile(filepath.Join(at, "style.css"))
	expect.NoError(t, err)
	return []byte(strings.Replace(string(text), "<style>style.css</style>", "<style>"+string(style)+"</style>", 1))
}

// listen records requests and errors of a page.
func (b *tab) listen(event any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, event.Request.URL)
	case *log.EventEntryAdded:
		b.said = append(b.said, event.Entry.Text)
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, event.ExceptionDetails.Text)
	case *page.EventJavascriptDialogOpening:
		b.said = append(b.said, "a dialog: "+event.Message)
	}
}

func (b *tab) do(actions ...action) {
	b.t.Helper()
	expect.NoError(b.t, chromedp.Do(b, actions...))
}

// ask evaluates an expression that can use the functions of checks.js.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	answer, err := chromedp.Run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	expect.NoError(b.t, err)
	return answer
}

// clean fails the test with each finding of a check.
func (b *tab) clean(check string) {
	b.t.Helper()
	for _, wrong := range ask[[]string](b, check+"()") {
		b.t.Errorf("%s: %s", check, wrong)
	}
}

// scheme sets the preferred colour scheme: light or dark.
func scheme(name string) action {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

func window(width int64) action { return chromedp.EmulateViewport(width, 900) }
