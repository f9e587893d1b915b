// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect has assertions that tests of several packages share: no error, equal values, parts of a text, a condition
// that becomes true, valid JSON.
package expect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Patience is how long a wait may see nothing new. A longer wait is a failure, even on a busy machine on which
// Kubernetes' garbage collector stalls for minutes, as it does while the converter of any kind fails.
const Patience = 8 * time.Minute

// lastChange, in times of Patience, is when changes no longer prolong a wait: what changes for so
// long may do so forever.
const lastChange = 3

// The pause between two tries grows: most waits are short, and long ones must not load the API
// server.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// NoError fails the test immediately if err is not nil.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Equal fails the test, which continues, if got differs from want; what names the value.
func Equal[T any](tb testing.TB, what string, want, got T, options ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Contains fails the test, which continues, if text lacks one of the parts; what names the text.
func Contains(tb testing.TB, what, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// Eventually calls look until it reports done. After Patience without a change of what look sees, it
// fails the test with what it saw last: slow work may take longer. It also works in cleanup functions,
// where the test's context is already done.
func Eventually(tb testing.TB, what string, look func() (done bool, seen string)) {
	tb.Helper()
	if waited, done, seen := wait(Patience, look); !done {
		tb.Fatalf("waited %s in vain: %s; last seen: %s", waited.Round(time.Millisecond), what, seen)
	}
}

// Success calls try until it returns no error. After Patience it fails the test with the last error. A try
// that hangs is cut off after that time, too.
func Success(tb testing.TB, what string, try func(ctx context.Context) error) {
	tb.Helper()
	Eventually(tb, what, func() (bool, string) {
		ctx, cancel := context.WithTimeout(tb.Context(), Patience)
		defer cancel()
		err := try(ctx)
		return err == nil, fmt.Sprint(err)
	})
}

func wait(patience time.Duration, look func() (bool, string)) (waited time.Duration, done bool, seen string) {
	began := time.Now()
	end := began.Add(patience)
	for pause := firstPause; ; pause = min(pause*5/4, lastPause) {
		before := seen
		done, seen = look()
		now := time.Now()
		waited = now.Sub(began)
		if seen != before && waited < lastChange*patience {
			end = now.Add(patience)
		}
		if done || now.After(end) {
			return waited, done, seen
		}
		<-time.After(pause)
	}
}

// JSON decodes one JSON document. Numbers are json.Number, so that they stay as written.
func JSON[T ~string | ~[]byte](tb testing.TB, document T) any {
	tb.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(document)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		tb.Fatalf("%v in %s", err, string(document))
	}
	return value
}

// YAML decodes a file, which may have no unknown fields. Its path has one name or several.
func YAML[T any](tb testing.TB, path ...string) *T {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	NoError(tb, err)
	value := new(T)
	NoError(tb, yaml.UnmarshalStrict(text, value))
	return value
}
