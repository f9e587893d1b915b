// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"math"
	"math/bits"
	"regexp"
	"strconv"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// sizes tells the estimator how large values are. It implements checker.CostEstimator.
type sizes struct {
	self  *apiservercel.DeclType
	typed *ast.AST
	// ranges are what macros go through, by the names of the variables for what
	// they meet there. One name for several ranges is nil.
	ranges map[string]ast.Expr
}

func newSizes(self *apiservercel.DeclType, typed *ast.AST) *sizes {
	z := &sizes{self, typed, map[string]ast.Expr{}}
	ast.PreOrderVisit(typed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		of, name := e.AsComprehension().IterRange(), e.AsComprehension().IterVar()
		if e.AsComprehension().HasIterVar2() {
			name = e.AsComprehension().IterVar2() // the other one is a number, or a key
		} else if typed.GetType(of.ID()).Kind() != types.ListKind {
			of = nil
		}
		if _, taken := z.ranges[name]; taken {
			of = nil
		}
		z.ranges[name] = of
	}))
	return z
}

// EstimateSize finds the type of what is at a path below self. What an expression
// makes of the fields, such as the parts of a string, is no larger than they are.
func (z *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	switch {
	case len(path) > 0 && path[0] == expression.Self:
		at := z.self
		for _, name := range path[1:] {
			at = down(at, name)
		}
		return &checker.SizeEstimate{Max: z.sizeOfType(at)}
	case element.Type().Kind() == types.TypeKind:
		return &checker.SizeEstimate{Max: 1} // type(x) == int compares two names
	case isScalar(element.Type()):
		return nil
	case len(path) == 0 && element.Expr() != nil:
		if element.Expr().Kind() != ast.CallKind {
			return nil
		}
		return &checker.SizeEstimate{Max: z.sizeOf(element.Expr())}
	}
	return &checker.SizeEstimate{Max: total(z.self)}
}

// sizeOfType is that of all values together where the type is unknown.
func (z *sizes) sizeOfType(t *apiservercel.DeclType) uint64 {
	if t == nil {
		return total(z.self)
	}
	return sizeOf(t)
}

// sizeOf follows what makes a text of something else. A scalar has the size of its text.
func (z *sizes) sizeOf(e ast.Expr) uint64 {
	if length, scalar := lengths[z.typed.GetType(e.ID()).Kind()]; scalar {
		return length
	}
	switch e.Kind() {
	case ast.LiteralKind:
		if text, isText := e.AsLiteral().(types.String); isText {
			return uint64(len(text))
		}
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Add:
			return plus(z.sizeOf(args[0]), z.sizeOf(args[1]))
		case operators.Conditional:
			return max(z.sizeOf(args[1]), z.sizeOf(args[2]))
		case "string":
			return z.sizeOf(args[0])
		case "format":
			return z.sizeOfFormat(e.AsCall().Target(), args[0])
		}
	}
	at := z.typeOf(e)
	if at != nil && at.IsObject() {
		return total(at)
	}
	if at != nil && at.CelType().Kind() == types.DynKind {
		return max(sizeOf(at), lengths[types.IntKind]) // an integer or a string
	}
	return z.sizeOfType(at)
}

// lengths are the most characters of scalars in texts.
var lengths = map[types.Kind]uint64{
	types.BoolKind: 5, types.IntKind: 20, types.UintKind: 20, types.DoubleKind: 24, types.DurationKind: 32, types.TimestampKind: 35,
}

var precision = regexp.MustCompile(`%\.([0-9]+)`)

// sizeOfFormat adds up what is filled in. Numbers may have more digits there: all
// of the largest double, 64 binary ones, and as many behind the point as it says.
func (z *sizes) sizeOfFormat(target, list ast.Expr) uint64 {
	if target.Kind() != ast.LiteralKind || list.Kind() != ast.ListKind {
		return total(z.self)
	}
	const digits, double = 65, 350
	text := string(target.AsLiteral().(types.String))
	size := uint64(len(text))
	for _, found := range precision.FindAllStringSubmatch(text, -1) {
		places, _ := strconv.ParseUint(found[1], 10, 32) // one that is too large does not compile
		size = plus(size, places)
	}
	for _, arg := range list.AsList().Elements() {
		switch z.typed.GetType(arg.ID()).Kind() {
		case types.IntKind, types.UintKind:
			size = plus(size, digits)
		case types.DoubleKind, types.DynKind:
			size = plus(size, max(double, z.sizeOf(arg)))
		default:
			size = plus(size, z.sizeOf(arg))
		}
	}
	return size
}

// typeOf follows what the estimator has no paths for, the optional fields; nil is unknown.
func (z *sizes) typeOf(e ast.Expr) *apiservercel.DeclType {
	switch e.Kind() {
	case ast.IdentKind:
		if e.AsIdent() == expression.Self {
			return z.self
		}
		if of := z.ranges[e.AsIdent()]; of != nil {
			return down(z.typeOf(of), "@items")
		}
	case ast.SelectKind:
		return down(z.typeOf(e.AsSelect().Operand()), e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.OptSelect:
			name, _ := call.Args()[1].AsLiteral().Value().(string)
			return down(z.typeOf(call.Args()[0]), name)
		case operators.OptIndex, operators.Index:
			return down(z.typeOf(call.Args()[0]), "@items")
		case "or", "orValue", "value":
			return z.typeOf(call.Target())
		case "dyn", "optional.of", "optional.ofNonZeroValue":
			return z.typeOf(call.Args()[0])
		}
	}
	return nil
}

// total is the size of all that is in a value.
func total(t *apiservercel.DeclType) uint64 {
	size := sizeOf(t)
	switch {
	case t.IsList() || t.IsMap():
		size = times(size, max(total(t.ElemType), 1))
	case t.IsObject():
		for _, field := range t.Fields {
			size = plus(size, total(field.Type))
		}
	}
	return size
}

// isScalar reports whether the estimator knows the size, which is that of a number.
func isScalar(t *types.Type) bool {
	switch t.Kind() {
	case types.StringKind, types.BytesKind, types.ListKind, types.MapKind, types.StructKind, types.DynKind, types.OpaqueKind:
		return false
	}
	return true
}

// EstimateCallCost implements checker.CostEstimator: the libraries know their costs.
func (z *sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// down is the type of a part of a value, nil where it is unknown.
func down(at *apiservercel.DeclType, name string) *apiservercel.DeclType {
	if at == nil {
		return nil
	}
	switch name {
	case "@items", "@values":
		return at.ElemType
	case "@keys":
		return at.KeyType
	}
	field, found := at.Fields[name]
	if !found {
		escaped, _ := apiservercel.Escape(name)
		if field, found = at.Fields[escaped]; !found {
			return nil
		}
	}
	return field.Type
}

func sizeOf(t *apiservercel.DeclType) uint64 { return uint64(max(t.MaxElements, 0)) }

// times and plus stop at the largest number.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}
