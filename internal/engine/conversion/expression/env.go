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
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// Self is the variable of expressions with the fields.
	Self = "self"
	// Metadata is the variable with the name and the namespace of the object.
	Metadata = "metadata"
	// metadataType is the type of metadata. No expression can name it.
	metadataType = "@metadata"
	// maxName is the maximum length of a name, in characters.
	maxName = 253
	// selfType is the type of self. No expression can name it.
	selfType = "@self"
)

// NewExpressions returns the environment with what the previous release of Kubernetes already had,
// so that an operator that is one release older can run what this one accepts. The API server has
// the same two environments.
func NewExpressions(set *environment.EnvSet) *cel.Env { return set.NewExpressionsEnv() }

// StoredExpressions returns the environment in which expressions are evaluated, with everything
// that this release has.
func StoredExpressions(set *environment.EnvSet) *cel.Env { return set.StoredExpressionsEnv() }

// Scope compiles expressions over the fields of one side. The compiler makes one from its schemas,
// with all bounds, and a converter pod from those of the ruleset.
type Scope struct {
	Env *cel.Env
	// Self is the type of the variable self.
	Self *apiservercel.DeclType
}

// MetadataType is the type of the variable metadata.
var MetadataType = declareMetadata()

func declareMetadata() *apiservercel.DeclType {
	declared := map[string]*apiservercel.DeclField{}
	for _, name := range []string{"name", "namespace"} {
		text := apiservercel.NewSimpleTypeWithMinSize("string", cel.StringType, types.String(""), apiservercel.MinStringSize)
		text.MaxElements = maxName
		declared[name] = apiservercel.NewDeclField(name, text, false, nil, nil)
	}
	return apiservercel.NewObjectType(metadataType, declared)
}

// NewScope extends an environment by self. It omits fields without a type, whose schema does not
// say what they hold.
func NewScope(fields map[string]*apiservercel.DeclType, choose func(*environment.EnvSet) *cel.Env) (*Scope, error) {
	set, err := environments()
	if err != nil {
		return nil, err
	}
	base, self := choose(set), declareSelf(fields)
	provider := apiservercel.NewDeclTypeProvider(self, MetadataType)
	provider.SetRecognizeKeywordAsFieldName(true) // self.ref.namespace, as in validation rules since Kubernetes 1.31
	options, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(append(options, cel.Variable(Self, self.CelType()), cel.Variable(Metadata, MetadataType.CelType()))...)
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

// typesOf returns the types of fields.
func typesOf(fields []Field) map[string]*apiservercel.DeclType {
	declared := map[string]*apiservercel.DeclType{}
	for _, field := range fields {
		declared[field.Name] = DeclType(field.Schema)
	}
	return declared
}

// DeclType returns the type of a value in expressions: that of validation rules, or dyn for one that its schema does not
// describe.
func DeclType(s common.Schema) *apiservercel.DeclType {
	if !IsOpaque(s) {
		return common.SchemaDeclType(s, s.IsXEmbeddedResource())
	}
	opaque := apiservercel.NewSimpleTypeWithMinSize("dyn", cel.DynType, nil, 1)
	opaque.MaxElements = apiservercel.DefaultMaxRequestSizeBytes
	for _, bound := range []*int64{s.MaxItems(), s.MaxProperties(), s.MaxLength()} {
		if bound != nil {
			opaque.MaxElements = min(opaque.MaxElements, *bound)
		}
	}
	return opaque
}

// IsOpaque reports whether a schema does not describe a value, which expressions read as dyn: it may be anything, or an object, or consists of such values.
func IsOpaque(s common.Schema) bool {
	values := s.AdditionalProperties()
	switch {
	case s.IsXIntOrString():
		return false
	case s.Type() == "":
		return s.IsXPreserveUnknownFields()
	case s.Type() == "array" && s.Items() != nil:
		return IsOpaque(s.Items())
	case s.Type() == "array":
		return s.IsXPreserveUnknownFields()
	case s.Type() != "object" || len(s.Properties()) > 0:
		return false
	case values != nil && values.Schema() != nil:
		return IsOpaque(values.Schema())
	}
	return s.IsXPreserveUnknownFields() || values != nil && values.Allows()
}

// Declared returns an object type below self by the name that results have, nil if there is none.
func (s *Scope) Declared(name string) *apiservercel.DeclType {
	return apiservercel.FieldTypeMap(selfType, s.Self)[name]
}

// Readable replaces internal names of types in a text.
func Readable(text string) string {
	return strings.NewReplacer(selfType, Self, metadataType, Metadata).Replace(text)
}

// Compile parses an expression and checks its types. It fails with a *CompileError.
func (s *Scope) Compile(expression string) (compiled *cel.Ast, err error) {
	defer Recover(&err)
	compiled, issues := s.Env.Parse(expression)
	if issues.Err() != nil {
		return nil, s.compileError(issues)
	}
	widen(compiled.NativeRep())
	if compiled, issues = s.Env.Check(compiled); issues.Err() != nil {
		return nil, s.compileError(issues)
	}
	if problem := unsupportedCall(compiled.NativeRep()); problem != "" {
		return nil, &CompileError{Messages: []string{problem}}
	}
	return compiled, nil
}

// unsupportedCall describes a call that expressions must not make, "" if there is none.
func unsupportedCall(compiled *ast.AST) string {
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

// CompileError says why an expression is not valid for these fields.
type CompileError struct {
	Messages []string
	// Fields are the fields of self, if the expression names another one.
	Fields []string
}

func (e *CompileError) Error() string {
	text := strings.Join(e.Messages[:min(len(e.Messages), 3)], "; ")
	if len(e.Fields) > 0 {
		text += "; self has " + strings.Join(e.Fields, ", ")
	}
	return text
}

// Recover is deferred where the library for expressions runs. It turns a panic of the library into a
// *CompileError: a text of a user must neither end a command, nor leave a policy without a status.
// The library itself recovers only while it evaluates.
func Recover(err *error) {
	if cause := recover(); cause != nil {
		*err = &CompileError{Messages: []string{fmt.Sprintf("the library for expressions fails at it (%v): write it in another way", cause)}}
	}
}

func (s *Scope) compileError(issues *cel.Issues) *CompileError {
	failed := &CompileError{}
	for _, issue := range issues.Errors() {
		hint := ""
		if strings.HasPrefix(issue.Message, "found no matching overload for '"+operators.Conditional+"' applied to '(bool, ") {
			hint = ": what is not the result has one type: put both in dyn()"
		}
		failed.Messages = append(failed.Messages, fmt.Sprintf("%s (line %d, column %d)%s",
			Readable(issue.Message), issue.Location.Line(), issue.Location.Column()+1, hint))
		if strings.HasPrefix(issue.Message, "undefined field") {
			failed.Fields = slices.Sorted(maps.Keys(s.Self.Fields))
		}
	}
	return failed
}

// Program prepares a compiled expression for evaluation, within EvaluationLimit.
func (s *Scope) Program(compiled *cel.Ast) (program cel.Program, err error) {
	defer Recover(&err)
	return s.Env.Program(compiled, cel.CostLimit(EvaluationLimit), cel.CustomDecoratorV2(iterateSorted(compiled.NativeRep())))
}
