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

// environments are those of the API server, with guards. Making them takes a few
// milliseconds and a megabyte: that is done when the first expression needs it,
// and once in a process.
var environments = sync.OnceValues(func() (*environment.EnvSet, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	var guarded []cel.EnvOption
	for _, g := range guards {
		option, err := g.option(base.StoredExpressionsEnv())
		if err != nil {
			return nil, err
		}
		guarded = append(guarded, option)
	}
	return base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: guarded})
})

// guard refuses calls of a function that would do too much. What a call costs is
// charged when it is over, and so is no limit for one whose result, or whose
// work, is as large as the product of its arguments: a single one could use up
// the memory, or minutes.
type guard struct {
	function, overload string
	// work is the size of the result, or what the call costs.
	work func(args []ref.Val) int
	most int
}

var guards = []guard{
	{"replace", "string_replace_string_string", replaced, largestResult},
	{"replace", "string_replace_string_string_int", replaced, largestResult},
	{"join", "list_join", joined, largestResult},
	{"join", "list_join_string", joined, largestResult},
	{"distinct", "list_distinct", compared, EvaluationLimit},
	{"sets.contains", "list_sets_contains_list", compared, EvaluationLimit},
	{"sets.equivalent", "list_sets_equivalent_list", compared, EvaluationLimit},
	{"sets.intersects", "list_sets_intersects_list", compared, EvaluationLimit},
}

// option declares the function again, with the guard before what it did.
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
		if g.work(args) > g.most {
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

// replaced is the size of a text in which all places are replaced.
func replaced(args []ref.Val) int {
	text, old, replacement := textOf(args[0]), textOf(args[1]), textOf(args[2])
	return len(text) + strings.Count(text, old)*len(replacement)
}

// joined is the size of a joined list.
func joined(args []ref.Val) int {
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

// compared is how often elements are compared where each of a list is compared
// with each of the other, or of the same one.
func compared(args []ref.Val) int {
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
