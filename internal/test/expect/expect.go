// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect is what tests of several packages expect in the same way: that nothing
// went wrong, that something becomes true, that a text is JSON.
package expect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Patience bounds every wait. What takes longer is broken, also on a machine that has
// much to do.
const Patience = 3 * time.Minute

// Pauses between two looks grow: most waits are short, and those that are not leave the
// API server alone.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// NoError ends the test with an error.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Eventually looks until look reports true. After Patience it ends the test, and tells
// what was seen last. It works in cleanup functions, too, where the context of a test has
// ended.
func Eventually(tb testing.TB, what string, look func() (done bool, seen string)) {
	tb.Helper()
	if waited, done, seen := wait(Patience, look); !done {
		tb.Fatalf("waited %s in vain: %s; last seen: %s", waited.Round(time.Millisecond), what, seen)
	}
}

// Success tries until try returns no error. After Patience it ends the test, and tells
// the last error, but not that of a try that the end of the time interrupted.
func Success(tb testing.TB, what string, try func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	Eventually(tb, what, lastError(ctx, try))
}

func lastError(ctx context.Context, try func(ctx context.Context) error) func() (bool, string) {
	var last error
	return func() (bool, string) {
		err := try(ctx)
		if last == nil || err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, fmt.Sprint(last)
	}
}

func wait(patience time.Duration, look func() (bool, string)) (waited time.Duration, done bool, seen string) {
	began := time.Now()
	for pause := firstPause; ; pause = min(pause*5/4, lastPause) {
		done, seen = look()
		if waited = time.Since(began); done || waited > patience {
			return waited, done, seen
		}
		<-time.After(pause)
	}
}

// JSON decodes one JSON document. Its numbers are json.Number: as they are written.
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
