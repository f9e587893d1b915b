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
)

// TestConditionsAreDocumented: every condition type and every reason is documented,
// including those of events. The planner's tests compare their statuses.
func TestConditionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
