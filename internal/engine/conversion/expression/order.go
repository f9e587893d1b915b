// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// iterateSorted makes macros over a map, such as map and filter, visit its keys in order.
// Otherwise they visit them in the order of a Go map, so that the resulting list differs each
// time.
func iterateSorted(compiled *ast.AST) interpreter.InterpretableDecoratorV2 {
	ranges := map[int64]bool{}
	ast.PreOrderVisit(compiled.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		over := e.AsComprehension().IterRange()
		if compiled.GetType(over.ID()).Kind() != types.ListKind {
			ranges[over.ID()] = true
		}
	}))
	return func(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if ranges[step.ID()] {
			return sortedRange{step}, nil
		}
		return step, nil
	}
}

// sortedRange is the step of a program that returns the range of a macro.
type sortedRange struct{ interpreter.InterpretableV2 }

func (o sortedRange) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return sortKeys(o.InterpretableV2.Exec(frame))
}

func (o sortedRange) Eval(vars interpreter.Activation) ref.Val {
	return sortKeys(o.InterpretableV2.Eval(vars))
}

func sortKeys(value ref.Val) ref.Val {
	if m, isMap := value.(traits.Mapper); isMap {
		return sortedMap{m}
	}
	return value
}

// sortedMap is a map with sorted keys.
type sortedMap struct{ traits.Mapper }

func (m sortedMap) keys() []ref.Val {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		if key := it.Next(); key != nil { // nil for a field that the schema does not name
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b ref.Val) int {
	if comparer, ok := a.(traits.Comparer); ok {
		if order, ok := comparer.Compare(b).(types.Int); ok {
			return int(order)
		}
	}
	return cmp.Or(cmp.Compare(a.Type().TypeName(), b.Type().TypeName()), cmp.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())))
}

// Iterator is for macros over the keys.
func (m sortedMap) Iterator() traits.Iterator {
	return types.DefaultTypeAdapter.NativeToValue(m.keys()).(traits.Iterable).Iterator()
}

// Fold is for macros over keys and values.
func (m sortedMap) Fold(f traits.Folder) {
	for _, key := range m.keys() {
		if !f.FoldEntry(key, m.Get(key)) {
			return
		}
	}
}
