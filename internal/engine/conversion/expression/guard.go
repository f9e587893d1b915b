// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// environments are those of the API server, with guards. They take a few milliseconds and a
// megabyte, so they are made once per process, when the first expression needs them.
var environments = sync.OnceValues(func() (*environment.EnvSet, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	guarded := []cel.EnvOption{cel.ASTValidators(mixedLiterals{})}
	for _, g := range guards {
		option, err := g.option(base.StoredExpressionsEnv())
		if err != nil {
			return nil, err
		}
		guarded = append(guarded, option)
	}
	return base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: guarded})
})

// guard refuses calls that would take too much work. The cost of a call is charged after it, which
// is too late if result or work grow with the product of the arguments: one call could use all
// memory, or minutes.
type guard struct {
	function, overload string
	// work returns the size of the result, or the cost of the call.
	work  func(args []ref.Val) int
	limit int
}

var guards = []guard{
	{"replace", "string_replace_string_string", replacedSize, maxResultBytes},
	{"replace", "string_replace_string_string_int", replacedSize, maxResultBytes},
	{"join", "list_join", joinedSize, maxResultBytes},
	{"join", "list_join_string", joinedSize, maxResultBytes},
	{"distinct", "list_distinct", comparisons, EvaluationLimit},
	{"sets.contains", "list_sets_contains_list", comparisons, EvaluationLimit},
	{"sets.equivalent", "list_sets_equivalent_list", comparisons, EvaluationLimit},
	{"sets.intersects", "list_sets_intersects_list", comparisons, EvaluationLimit},
}

// option declares the function again, with the guard before it.
func (g guard) option(env *cel.Env) (cel.EnvOption, error) {
	function := env.Functions()[g.function]
	bindings, err := function.Bindings()
	if err != nil {
		return nil, err
	}
	for _, declared := range function.OverloadDecls() {
		for _, binding := range bindings {
			if declared.ID() == g.overload && binding.Operator == g.overload {
				return cel.Function(g.function, g.redeclare(declared, binding)), nil
			}
		}
	}
	return nil, fmt.Errorf("there is no function %s with the overload %s", g.function, g.overload)
}

func (g guard) redeclare(declared *decls.OverloadDecl, binding *functions.Overload) cel.FunctionOpt {
	call := cel.FunctionBinding(func(args ...ref.Val) ref.Val {
		if g.work(args) > g.limit {
			return types.NewErr("%s would do too much", g.function)
		}
		switch {
		case binding.Unary != nil && len(args) == 1:
			return binding.Unary(args[0])
		case binding.Binary != nil && len(args) == 2:
			return binding.Binary(args[0], args[1])
		}
		return binding.Function(args...)
	})
	if declared.IsMemberFunction() {
		return cel.MemberOverload(g.overload, declared.ArgTypes(), declared.ResultType(), call)
	}
	return cel.Overload(g.overload, declared.ArgTypes(), declared.ResultType(), call)
}

// replacedSize returns an upper bound for the result of a replacement.
func replacedSize(args []ref.Val) int {
	text, old, replacement := textOf(args[0]), textOf(args[1]), textOf(args[2])
	return len(text) + strings.Count(text, old)*len(replacement)
}

// joinedSize returns an upper bound for the result of a join.
func joinedSize(args []ref.Val) int {
	list, isList := args[0].(traits.Lister)
	if !isList {
		return 0
	}
	size, separator := 0, ""
	if len(args) > 1 {
		separator = textOf(args[1])
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		size += len(textOf(it.Next())) + len(separator)
	}
	return size
}

// comparisons returns the number of comparisons between all elements of two lists, or of one list
// with itself.
func comparisons(args []ref.Val) int {
	return sizeOfList(args[0]) * sizeOfList(args[len(args)-1])
}

func textOf(value ref.Val) string {
	text, _ := value.(types.String)
	return string(text)
}

func sizeOfList(value ref.Val) int {
	if list, isList := value.(traits.Lister); isList {
		size, _ := list.Size().(types.Int)
		return int(size)
	}
	return 0
}
