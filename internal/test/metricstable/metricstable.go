// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricstable compares the tables of metrics in the documentation with scraped metrics.
package metricstable

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// Table is one table of a page, between two comments with its name.
type Table struct {
	Page, Name string
	// Prefix selects the metrics of the table by the beginning of their names.
	Prefix string
	// Names limits the table to some of the metrics with that prefix; nil means all.
	Names []string
}

// cut splits the page into the rows of the table and the text around them.
func (t Table) cut(tb testing.TB) (head, rows, tail string) {
	tb.Helper()
	page, err := os.ReadFile(t.Page)
	expect.NoError(tb, err)
	begin, end := "<!-- BEGIN "+t.Name+" -->\n", "<!-- END "+t.Name+" -->"
	head, rest, _ := strings.Cut(string(page), begin)
	rows, tail, found := strings.Cut(rest, end)
	if !found {
		tb.Fatalf("%s has no table between %q and %q", t.Page, begin, end)
	}
	return head + begin, rows, end + tail
}

// Check compares the table with scraped metrics, or rewrites it with -update.
func (t Table) Check(tb testing.TB, scraped string) {
	tb.Helper()
	head, got, tail := t.cut(tb)
	want := t.markdown(scraped)
	if golden.Update() {
		expect.NoError(tb, os.WriteFile(t.Page, []byte(head+want+tail), 0o600))
	} else if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("table in %s (-want +got), which go test -update rewrites:\n%s", t.Page, diff)
	}
}

func (t Table) markdown(scraped string) string {
	var table strings.Builder
	table.WriteString("\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	var name, help, kind string
	lines := bufio.NewScanner(strings.NewReader(scraped))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "# HELP "):
			name, help, _ = strings.Cut(strings.TrimPrefix(line, "# HELP "), " ")
		case strings.HasPrefix(line, "# TYPE "):
			kind = line[strings.LastIndex(line, " ")+1:]
		case name != "" && t.has(name):
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, kind, labels(line), help)
			name = ""
		}
	}
	table.WriteString("\n")
	return table.String()
}

func (t Table) has(name string) bool {
	return strings.HasPrefix(name, t.Prefix) && (t.Names == nil || slices.Contains(t.Names, name))
}

// Names returns the metrics in a table of a page.
func Names(tb testing.TB, page, table string) []string {
	tb.Helper()
	_, rows, _ := Table{Page: page, Name: table}.cut(tb)
	var names []string
	for _, match := range row.FindAllStringSubmatch(rows, -1) {
		names = append(names, match[1])
	}
	if names == nil {
		tb.Fatalf("%s has no rows of %s", page, table)
	}
	return names
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` ")

var label = regexp.MustCompile(`[{,]([a-z_]+)=`)

func labels(line string) string {
	var names []string
	for _, match := range label.FindAllStringSubmatch(line, -1) {
		if match[1] != "le" {
			names = append(names, "`"+match[1]+"`")
		}
	}
	return strings.Join(names, ", ")
}

// asked are the installed files that have queries.
var asked = []string{"config/components/prometheus/rules.yaml", "config/components/grafana/dashboard.json"}

var (
	selector = regexp.MustCompile(`\b([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+) *(?:=|!=|=~|!~) *\\?"([^"\\]*)\\?"`)
)

// Asked returns each label="value" that alerts and the dashboard select of metrics with a prefix. A
// misspelt value would match nothing, without an error.
func Asked(tb testing.TB, top, prefix string) []string {
	tb.Helper()
	var all []string
	for _, file := range asked {
		text, err := os.ReadFile(filepath.Join(top, file))
		expect.NoError(tb, err)
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

// pairs omits the variables of the dashboard, and the empty value, with which a label may be absent.
func pairs(matchers string) []string {
	var all []string
	for _, found := range matcher.FindAllStringSubmatch(matchers, -1) {
		for value := range strings.SplitSeq(found[2], "|") {
			if value != "" && !strings.HasPrefix(value, "$") {
				all = append(all, found[1]+`="`+value+`"`)
			}
		}
	}
	return all
}
