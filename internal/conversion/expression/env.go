// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// selfName is the one variable of expressions.
	selfName = "self"
	// selfType is the type of self. No expression can write that name.
	selfType = "@self"
)

// newExpressions has what the release of Kubernetes before this one had already,
// so that an operator that is one release older can run what this one accepts.
// storedExpressions has all there is. The API server divides them the same way.
func newExpressions(set *environment.EnvSet) *cel.Env { return set.NewExpressionsEnv() }

func storedExpressions(set *environment.EnvSet) *cel.Env { return set.StoredExpressionsEnv() }

// side is one side's fields as the expressions of the other side see them.
type side struct {
	env  *cel.Env
	self *apiservercel.DeclType
}

// newSide extends the environment of all expressions by self.
func newSide(fields []Field, choose func(*environment.EnvSet) *cel.Env) (*side, error) {
	set, err := environments()
	if err != nil {
		return nil, err
	}
	base := choose(set)
	self := declare(fields)
	provider := apiservercel.NewDeclTypeProvider(self)
	provider.SetRecognizeKeywordAsFieldName(true) // self.ref.namespace, as in validation rules since Kubernetes 1.31
	options, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(append(options, cel.Variable(selfName, self.CelType()))...)
	if err != nil {
		return nil, err
	}
	return &side{env, self}, nil
}

// declare gives the fields' types to an object type. A field whose schema does
// not say what it holds has no type, and is not in it.
func declare(fields []Field) *apiservercel.DeclType {
	declared := map[string]*apiservercel.DeclField{}
	for _, field := range fields {
		if of := model.SchemaDeclType(field.Schema, field.Schema.XEmbeddedResource); of != nil {
			of = of.MaybeAssignTypeName(selfType + "." + field.Name)
			declared[field.Name] = apiservercel.NewDeclField(field.Name, of, false, nil, nil)
		}
	}
	return apiservercel.NewObjectType(selfType, declared)
}

// compile parses an expression and checks its types.
func (s *side) compile(expression string) (*cel.Ast, error) {
	compiled, issues := s.env.Compile(expression)
	if issues != nil && issues.Err() != nil {
		return nil, s.compileError(issues)
	}
	if problem := refused(compiled.NativeRep()); problem != "" {
		return nil, &CompileError{Messages: []string{problem}}
	}
	return compiled, nil
}

// refused says which function an expression may not call this way, if it does.
func refused(compiled *ast.AST) string {
	for _, reference := range compiled.ReferenceMap() {
		for _, overload := range reference.OverloadIDs {
			if strings.HasSuffix(overload, "_with_tz") {
				return "reads a time zone, and which zones there are depends on the machine: add or subtract a duration instead"
			}
		}
	}
	var problem string
	ast.PreOrderVisit(compiled.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "format" && e.AsCall().Target().Kind() != ast.LiteralKind {
			problem = "fills a text that is computed, which may ask for any number of digits: write the text before .format() in quotes"
		}
	}))
	return problem
}

func (s *side) compileError(issues *cel.Issues) *CompileError {
	failed := &CompileError{}
	for _, issue := range issues.Errors() {
		failed.Messages = append(failed.Messages, fmt.Sprintf("%s (line %d, column %d)%s",
			strings.ReplaceAll(issue.Message, selfType, selfName), issue.Location.Line(), issue.Location.Column()+1, branches(issue.Message)))
		if strings.HasPrefix(issue.Message, "undefined field") {
			failed.Fields = sortedNames(s.self.Fields)
		}
	}
	return failed
}

// branches says how to write a choice between what CEL does not take for one type.
func branches(message string) string {
	types, found := strings.CutPrefix(message, "found no matching overload for '"+operators.Conditional+"' applied to '")
	switch {
	case !found || !strings.HasPrefix(types, "(bool, "):
		return ""
	case strings.Contains(types, ", null") || strings.Contains(types, ", optional_type("):
		return ": for no value write optional.none(), and put the other result in optional.of()"
	}
	return ": where the field can hold both, put each of them in dyn()"
}

// program makes a compiled expression ready to run.
func (s *side) program(compiled *cel.Ast) (cel.Program, error) {
	return s.env.Program(compiled, cel.CostLimit(evaluationLimit), cel.CustomDecoratorV2(inOrder(compiled.NativeRep())))
}

// reads are the fields of self that an expression names.
func reads(compiled *cel.Ast) map[string]bool {
	names := map[string]bool{}
	ast.PreOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			names[e.AsSelect().FieldName()] = true
		case ast.LiteralKind:
			// self.?name is a call with the name as its argument.
			if name, isText := e.AsLiteral().Value().(string); isText {
				names[name] = true
			}
		}
	}))
	return names
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckName says what is wrong with the name of a field; empty where nothing is.
func CheckName(name string) string {
	switch name {
	case "true", "false", "null", "in":
		return "true, false, null and in are no names in expressions, and without quotes YAML reads y, n, yes, no, on and off as one of them: choose another name"
	}
	if !identifier.MatchString(name) {
		return "expressions call the field self.name: write the name with letters, digits and _, and no digit first"
	}
	return ""
}
