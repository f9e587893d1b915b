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

// inOrder has the macros that go through a map, such as map and filter, meet its
// keys in order. On their own they meet them in the order of a Go map, which is
// another one each time, so that the list that they make is another one too.
func inOrder(compiled *ast.AST) interpreter.InterpretableDecoratorV2 {
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
			return ordered{step}, nil
		}
		return step, nil
	}
}

// ordered is the step of a program that gives what a macro goes through.
type ordered struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (o ordered) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return inKeyOrder(o.InterpretableV2.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (o ordered) Eval(vars interpreter.Activation) ref.Val {
	return inKeyOrder(o.InterpretableV2.Eval(vars))
}

func inKeyOrder(value ref.Val) ref.Val {
	if m, isMap := value.(traits.Mapper); isMap {
		return orderedMap{m}
	}
	return value
}

// orderedMap is a map whose keys come in order.
type orderedMap struct{ traits.Mapper }

func (m orderedMap) keys() []ref.Val {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		if key := it.Next(); key != nil { // a field that the schema does not name has none
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

// Iterator implements traits.Iterable, for macros over the keys.
func (m orderedMap) Iterator() traits.Iterator {
	return types.DefaultTypeAdapter.NativeToValue(m.keys()).(traits.Iterable).Iterator()
}

// Fold implements traits.Foldable, for macros over keys and values.
func (m orderedMap) Fold(f traits.Folder) {
	for _, key := range m.keys() {
		if !f.FoldEntry(key, m.Get(key)) {
			return
		}
	}
}
