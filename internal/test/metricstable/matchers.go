// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metricstable

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// asked are the files with the queries that are installed.
var asked = []string{"config/components/prometheus/rules.yaml", "config/components/grafana/dashboard.json"}

var (
	selector = regexp.MustCompile(`\b([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+) *(?:=|!=|=~|!~) *\\?"([^"\\]*)\\?"`)
)

// Asked returns what alerts and the dashboard ask of metrics that begin with the
// prefix: label="value", each once. A misspelt value finds nothing, and says nothing.
func Asked(tb testing.TB, top, prefix string) []string {
	tb.Helper()
	var all []string
	for _, file := range asked {
		text, err := os.ReadFile(filepath.Join(top, file))
		if err != nil {
			tb.Fatal(err)
		}
		for _, found := range selector.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(found[1], prefix) {
				all = append(all, pairs(found[2])...)
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		tb.Fatalf("nothing is asked of %s", prefix)
	}
	return all
}

// pairs leaves out what the reader of the dashboard chooses.
func pairs(matchers string) []string {
	var all []string
	for _, found := range matcher.FindAllStringSubmatch(matchers, -1) {
		for value := range strings.SplitSeq(found[2], "|") {
			if !strings.HasPrefix(value, "$") {
				all = append(all, found[1]+`="`+value+`"`)
			}
		}
	}
	return all
}
