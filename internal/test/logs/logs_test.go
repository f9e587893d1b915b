// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// logging are the folders of the programs that run in clusters.
var logging = []string{"controllers", "internal/cli/cmd", "internal/migration", "internal/operator/plan", "internal/operator/tracing", "internal/operator/verify", "internal/webhook"}

// TestLines: messages and keys are constant, so that they can be searched and counted, and lines
// per object have level V(1).
func TestLines(t *testing.T) {
	lines := 0
	for _, folder := range logging {
		root := filepath.Join("..", "..", "..", folder)
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			for _, line := range linesOf(file) {
				lines++
				for _, fault := range line.faults() {
					t.Errorf("%s: %s", files.Position(line.call.Pos()), fault)
				}
			}
			return nil
		})
		expect.NoError(t, err)
	}
	// A smaller number means that the test no longer finds the calls.
	if lines < 40 {
		t.Errorf("found %d log lines only", lines)
	}
}

func TestFaultsAreFound(t *testing.T) {
	cases := map[string][]string{
		`log.Info("Serving", "port", 1)`:                nil,
		`log.Error(err, "Serving failed", "port", 1)`:   nil,
		`log.V(1).Info("Failed", "object", name)`:       nil,
		`log.WithValues("run", 1)`:                      nil,
		`log.Info("Serving " + name)`:                   {"the message is not constant"},
		`log.Error(err, text)`:                          {"the message is not constant"},
		`log.Info("serving")`:                           {`the message "serving" does not begin with a capital letter, or ends with a mark`},
		`log.Info("Serving.")`:                          {`the message "Serving." does not begin with a capital letter, or ends with a mark`},
		`log.Info("Serving", name, 1)`:                  {"a key is not constant"},
		`log.Info("Serving", "the_port", 1)`:            {`the key "the_port" is not in camelCase`},
		`log.WithValues("Run", 1)`:                      {`the key "Run" is not in camelCase`},
		`log.Info("Serving", "msg", 1)`:                 {`the key "msg" is taken by the log itself`},
		`log.Info("Serving", "port")`:                   {"a key has no value"},
		`log.Info("Failed", "object", name)`:            {"a single object is for V(1)"},
		`logr.FromContextOrDiscard(ctx).Info("failed")`: {`the message "failed" does not begin with a capital letter, or ends with a mark`},
	}
	for source, want := range cases {
		expression, err := parser.ParseExpr(source)
		expect.NoError(t, err)
		lines := linesOf(expression)
		if len(lines) != 1 {
			t.Fatalf("%s: found %d lines", source, len(lines))
		}
		expect.Equal(t, source, want, lines[0].faults())
	}
}

// line is one call of a logger.
type line struct {
	call *ast.CallExpr
	// message is nil for values that are added to all lines.
	message ast.Expr
	values  []ast.Expr
	debug   bool
}

// linesOf finds log calls by their shape: no other method in this code has these names and that
// many arguments.
func linesOf(in ast.Node) []line {
	var found []line
	ast.Inspect(in, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if on, ok := method.X.(*ast.Ident); ok && on.Name == "http" {
			return true // http.Error answers a request
		}
		switch n := len(call.Args); {
		case method.Sel.Name == "Info" && n >= 1:
			found = append(found, line{call, call.Args[0], call.Args[1:], hasLevel(method.X)})
		case method.Sel.Name == "Error" && n >= 2:
			found = append(found, line{call, call.Args[1], call.Args[2:], false})
		case method.Sel.Name == "WithValues":
			found = append(found, line{call, nil, call.Args, false})
		}
		return true
	})
	return found
}

// hasLevel reports whether the logger was made with V, here or at its declaration.
func hasLevel(logger ast.Expr) bool {
	switch logger := logger.(type) {
	case *ast.CallExpr:
		method, ok := logger.Fun.(*ast.SelectorExpr)
		return ok && (method.Sel.Name == "V" || hasLevel(method.X))
	case *ast.Ident:
		if logger.Obj == nil {
			return false
		}
		made, ok := logger.Obj.Decl.(*ast.AssignStmt)
		return ok && slices.ContainsFunc(made.Rhs, hasLevel)
	}
	return false
}

var (
	sentence = regexp.MustCompile(`^[A-Z].*[^.:;, ]$`)
	camel    = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
	taken    = []string{"level", "ts", "msg", "logger", "caller"}
)

func (l line) faults() []string {
	var faults []string
	if l.message != nil {
		text, constant := literal(l.message)
		switch {
		case !constant:
			faults = append(faults, "the message is not constant")
		case !sentence.MatchString(text):
			faults = append(faults, fmt.Sprintf("the message %q does not begin with a capital letter, or ends with a mark", text))
		}
	}
	if len(l.values)%2 != 0 {
		faults = append(faults, "a key has no value")
	}
	for i := 0; i < len(l.values); i += 2 {
		key, constant := literal(l.values[i])
		switch {
		case !constant:
			faults = append(faults, "a key is not constant")
		case !camel.MatchString(key):
			faults = append(faults, fmt.Sprintf("the key %q is not in camelCase", key))
		case slices.Contains(taken, key):
			faults = append(faults, fmt.Sprintf("the key %q is taken by the log itself", key))
		case key == "object" && !l.debug:
			faults = append(faults, "a single object is for V(1)")
		}
	}
	return faults
}

func literal(expression ast.Expr) (string, bool) {
	basic, ok := expression.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}
