// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// Self is the one variable of expressions.
	Self = "self"
	// selfType is the type of self. No expression can write that name.
	selfType = "@self"
)

// NewExpressions has what the release of Kubernetes before this one had already,
// so that an operator that is one release older can run what this one accepts.
// StoredExpressions has all there is. The API server divides them the same way.
func NewExpressions(set *environment.EnvSet) *cel.Env { return set.NewExpressionsEnv() }

// StoredExpressions is the environment in which expressions are evaluated.
func StoredExpressions(set *environment.EnvSet) *cel.Env { return set.StoredExpressionsEnv() }

// Scope compiles expressions over the fields of one side. The compiler makes one
// of its schemas, with all bounds, and a converter pod one of the ruleset's.
type Scope struct {
	Env *cel.Env
	// Self is the type of the variable that has the fields.
	Self *apiservercel.DeclType
}

// NewScope extends an environment by self. A field without a type, because its
// schema does not say what it holds, is not in it.
func NewScope(fields map[string]*apiservercel.DeclType, choose func(*environment.EnvSet) *cel.Env) (*Scope, error) {
	set, err := environments()
	if err != nil {
		return nil, err
	}
	base, self := choose(set), declareSelf(fields)
	provider := apiservercel.NewDeclTypeProvider(self)
	provider.SetRecognizeKeywordAsFieldName(true) // self.ref.namespace, as in validation rules since Kubernetes 1.31
	options, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(append(options, cel.Variable(Self, self.CelType()))...)
	if err != nil {
		return nil, err
	}
	return &Scope{env, self}, nil
}

func declareSelf(fields map[string]*apiservercel.DeclType) *apiservercel.DeclType {
	declared := map[string]*apiservercel.DeclField{}
	for name, of := range fields {
		if of != nil {
			declared[name] = apiservercel.NewDeclField(name, of.MaybeAssignTypeName(selfType+"."+name), false, nil, nil)
		}
	}
	return apiservercel.NewObjectType(selfType, declared)
}

// typesOf declares the types of fields.
func typesOf(fields []Field) map[string]*apiservercel.DeclType {
	declared := map[string]*apiservercel.DeclType{}
	for _, field := range fields {
		declared[field.Name] = common.SchemaDeclType(field.Schema, field.Schema.IsXEmbeddedResource())
	}
	return declared
}

// Declared is an object type below self, by the name that results have; nil where there is none.
func (s *Scope) Declared(name string) *apiservercel.DeclType {
	return apiservercel.FieldTypeMap(selfType, s.Self)[name]
}

// Readable writes a type, or a message with types, as users know them.
func Readable(text string) string { return strings.ReplaceAll(text, selfType, Self) }

// Compile parses an expression and checks its types. It fails with a *CompileError.
func (s *Scope) Compile(expression string) (*cel.Ast, error) {
	compiled, issues := s.Env.Compile(expression)
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

// CompileError says that an expression is none, or not one over these fields.
type CompileError struct {
	Messages []string
	// Fields are those that self has, where the expression names another one.
	Fields []string
}

// Error implements error.
func (e *CompileError) Error() string {
	text := strings.Join(e.Messages[:min(len(e.Messages), 3)], "; ")
	if len(e.Fields) > 0 {
		text += "; self has " + strings.Join(e.Fields, ", ")
	}
	return text
}

func (s *Scope) compileError(issues *cel.Issues) *CompileError {
	failed := &CompileError{}
	for _, issue := range issues.Errors() {
		failed.Messages = append(failed.Messages, fmt.Sprintf("%s (line %d, column %d)%s",
			Readable(issue.Message), issue.Location.Line(), issue.Location.Column()+1, branches(issue.Message)))
		if strings.HasPrefix(issue.Message, "undefined field") {
			failed.Fields = slices.Sorted(maps.Keys(s.Self.Fields))
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

// Program makes a compiled expression ready to run, within the limit of one evaluation.
func (s *Scope) Program(compiled *cel.Ast) (cel.Program, error) {
	return s.Env.Program(compiled, cel.CostLimit(EvaluationLimit), cel.CustomDecoratorV2(inOrder(compiled.NativeRep())))
}
