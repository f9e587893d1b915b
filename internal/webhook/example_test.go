// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestExamples(t *testing.T) {
	var e examples
	now := time.Unix(1_000_000, 0)
	var got []int
	for _, after := range []time.Duration{0, 0, exampleEvery - 1, exampleEvery, exampleEvery + 1, 2 * exampleEvery} {
		got = append(got, e.level(now.Add(after)))
	}
	if diff := cmp.Diff([]int{0, 1, 1, 0, 1, 0}, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// TestOneFailureStandsForMany: a kind full of broken objects does not fill the log.
func TestOneFailureStandsForMany(t *testing.T) {
	lines := map[bool]int{}
	log := funcr.New(func(_, args string) { lines[strings.Contains(args, `"level"=0`)]++ }, funcr.Options{Verbosity: 1})
	handler := NewHandler(only(convertFunc(rename)), HandlerOptions{Group: "example.com", Log: log})
	handler.examples.level(time.Now().Add(time.Hour)) // the next example is an hour away
	for range 3 {
		post(handler, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[{"metadata":{"name":"bad"}}]}`))
	}
	if diff := cmp.Diff(map[bool]int{false: 3}, lines); diff != "" {
		t.Errorf("lines at level 0 (-want +got):\n%s", diff)
	}
}
