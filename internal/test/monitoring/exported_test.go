// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

const metricsPage = "../../../api/docs/metrics.md"

// exported has the labels of every metric.
type exported map[string][]string

// ofTargets are the labels that a scrape adds.
var ofTargets = []string{"namespace", "pod", "job", "instance", "container"}

var (
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\| .* \\|$")
	quoted    = regexp.MustCompile("`([a-z_]+)`")
)

// readExported reads the tables of the documentation, and adds recorded metrics.
func readExported(t *testing.T) exported {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	must(t, err)
	all := exported{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		names := slices.Clone(ofTargets)
		for _, label := range quoted.FindAllStringSubmatch(row[3], -1) {
			names = append(names, label[1])
		}
		if row[2] != "histogram" {
			all[row[1]] = names
			continue
		}
		all[row[1]+"_bucket"] = append(slices.Clone(names), "le")
		all[row[1]+"_sum"], all[row[1]+"_count"] = names, names
	}
	for _, rule := range readRules(t) {
		if level, _, found := strings.Cut(rule.Record, ":"); found {
			all[rule.Record] = strings.Split(level, "_")
		}
	}
	return all
}

// check checks the metrics and labels of an expression.
func (e exported) check(t *testing.T, where, expression string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			e.checkSelector(t, where, node)
		case *parser.AggregateExpr:
			e.checkLabels(t, where, node.Expr, node.Grouping)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				e.checkLabels(t, where, node.LHS, node.VectorMatching.MatchingLabels)
				e.checkLabels(t, where, node.RHS, node.VectorMatching.MatchingLabels)
			}
		}
		return nil
	})
}

func (e exported) checkSelector(t *testing.T, where string, selector *parser.VectorSelector) {
	t.Helper()
	known, found := e[selector.Name]
	if !found {
		t.Errorf("%s: no one exports %q", where, selector.Name)
		return
	}
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != model.MetricNameLabel && !slices.Contains(known, matcher.Name) {
			t.Errorf("%s: %s has no label %q", where, selector.Name, matcher.Name)
		}
	}
}

// checkLabels expects labels of a metric in the expression, or of a function in it.
func (e exported) checkLabels(t *testing.T, where string, under parser.Expr, names []string) {
	t.Helper()
	var known []string
	parser.Inspect(under, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			known = append(known, e[node.Name]...)
		case *parser.Call:
			if node.Func.Name == "label_replace" || node.Func.Name == "label_join" {
				known = append(known, node.Args[1].(*parser.StringLiteral).Val)
			}
		}
		return nil
	})
	for _, name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("%s: nothing of %s has a label %q", where, under, name)
		}
	}
}

func TestRulesUseWhatIsExported(t *testing.T) {
	all := readExported(t)
	for _, rule := range readRules(t) {
		all.check(t, rule.name(), rule.Expr)
	}
}

// The name of a record begins with its labels: level:metric:operations.
func TestRecordsHaveTheLabelsOfTheirNames(t *testing.T) {
	for _, rule := range readRules(t) {
		level, _, found := strings.Cut(rule.Record, ":")
		if rule.Record != "" && (!found || !strings.Contains(rule.Expr, "by ("+strings.ReplaceAll(level, "_", ", "))) {
			t.Errorf("%s does not aggregate by the labels of its name", rule.Record)
		}
	}
}
