// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestConditionsAreDocumented: every condition type and every reason is documented,
// including those of events. The planner's tests compare their statuses.
func TestConditionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "conditions.md"))
	expect.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	expect.NoError(t, err)
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		constant, ok := node.(*ast.ValueSpec)
		if !ok || len(constant.Values) != 1 {
			return true
		}
		literal, ok := constant.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		expect.NoError(t, err)
		found++
		if !strings.Contains(string(page), "`"+value+"`") && !strings.Contains(string(page), "# "+value+"\n") {
			t.Errorf("api/docs/conditions.md does not have %s, the value of %s", value, constant.Names[0])
		}
		return true
	})
	if found < 80 {
		t.Errorf("found %d constants only", found)
	}
}

// TestGatesAreListed: the README of the project has the conditions of the gates, in their order.
func TestGatesAreListed(t *testing.T) {
	_, table, _ := strings.Cut(contentOf(t, filepath.Join("..", "..", "README.md")), "| condition | True means |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		listed = append(listed, strings.Split(row, "`")[1])
	}
	expect.Equal(t, "features that README.md lists", Gates, listed)
}
