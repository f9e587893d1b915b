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

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// sizeEstimator implements checker.CostEstimator with the maximum sizes of values.
type sizeEstimator struct {
	self  *apiservercel.DeclType
	typed *ast.AST
	// ranges are the collections that macros iterate over, by the name of the iteration variable.
	// The entry of a name with several ranges is nil.
	ranges map[string]ast.Expr
	// total is the size of all fields together, with the metadata if the expression reads it.
	total uint64
}

func newSizeEstimator(self *apiservercel.DeclType, typed *ast.AST) *sizeEstimator {
	estimator := &sizeEstimator{self, typed, map[string]ast.Expr{}, totalSize(self)}
	if expression.ReadsMetadata(typed) {
		estimator.total = plus(estimator.total, totalSize(expression.MetadataType))
	}
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
		if _, taken := estimator.ranges[name]; taken {
			of = nil
		}
		estimator.ranges[name] = of
	}))
	return estimator
}

// EstimateSize returns the size of the type at a path below self. Values that an expression derives
// from fields, such as the parts of a string, are assumed to be no larger than all fields together.
func (e *sizeEstimator) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	switch {
	case len(path) > 0 && (path[0] == expression.Self || path[0] == expression.Metadata):
		current := e.self
		if path[0] == expression.Metadata {
			current = expression.MetadataType
		}
		for _, name := range path[1:] {
			current = memberType(current, name)
		}
		return &checker.SizeEstimate{Max: e.sizeOfType(current)}
	case element.Type().Kind() == types.TypeKind:
		return &checker.SizeEstimate{Max: 1} // type(x) == int compares two names
	case isScalar(element.Type()):
		return nil
	case len(path) == 0 && element.Expr() != nil:
		if element.Expr().Kind() != ast.CallKind {
			return nil
		}
		return &checker.SizeEstimate{Max: e.sizeOf(element.Expr())}
	}
	return &checker.SizeEstimate{Max: e.total}
}

// sizeOfType returns the size of a type, and that of all fields together if the type is unknown.
func (e *sizeEstimator) sizeOfType(t *apiservercel.DeclType) uint64 {
	if t == nil {
		return e.total
	}
	return sizeOf(t)
}

// sizeOf follows calls that make a text of other values. A scalar has the size of its text.
func (e *sizeEstimator) sizeOf(expr ast.Expr) uint64 {
	if length, scalar := scalarLengths[e.typed.GetType(expr.ID()).Kind()]; scalar {
		return length
	}
	switch expr.Kind() {
	case ast.LiteralKind:
		if text, isText := expr.AsLiteral().(types.String); isText {
			return uint64(len(text))
		}
	case ast.CallKind:
		args := expr.AsCall().Args()
		switch expr.AsCall().FunctionName() {
		case operators.Add:
			return plus(e.sizeOf(args[0]), e.sizeOf(args[1]))
		case operators.Conditional:
			return max(e.sizeOf(args[1]), e.sizeOf(args[2]))
		case "string":
			return e.sizeOf(args[0])
		case "format":
			return e.sizeOfFormat(expr.AsCall().Target(), args[0])
		}
	}
	declared := e.typeOf(expr)
	if declared != nil && declared.IsObject() {
		return totalSize(declared)
	}
	if declared != nil && declared.CelType().Kind() == types.DynKind {
		return max(sizeOf(declared), scalarLengths[types.IntKind]) // an integer or a string
	}
	return e.sizeOfType(declared)
}

// scalarLengths are the maximum lengths of scalars as text, in characters.
var scalarLengths = map[types.Kind]uint64{
	types.BoolKind: 5, types.IntKind: 20, types.UintKind: 20, types.DoubleKind: 24, types.DurationKind: 32, types.TimestampKind: 35,
}

var precision = regexp.MustCompile(`%\.([0-9]+)`)

// sizeOfFormat adds up the sizes of the arguments. Numbers may have more digits in a format: all
// digits of the largest double, 64 binary digits, and as many decimals as the precision says.
func (e *sizeEstimator) sizeOfFormat(target, list ast.Expr) uint64 {
	if target.Kind() != ast.LiteralKind || list.Kind() != ast.ListKind {
		return e.total
	}
	const digits, double = 65, 350
	text := string(target.AsLiteral().(types.String))
	size := uint64(len(text))
	for _, found := range precision.FindAllStringSubmatch(text, -1) {
		places, _ := strconv.ParseUint(found[1], 10, 32) // a precision that is too large does not compile
		size = plus(size, places)
	}
	for _, arg := range list.AsList().Elements() {
		switch e.typed.GetType(arg.ID()).Kind() {
		case types.IntKind, types.UintKind:
			size = plus(size, digits)
		case types.DoubleKind, types.DynKind:
			size = plus(size, max(double, e.sizeOf(arg)))
		default:
			size = plus(size, e.sizeOf(arg))
		}
	}
	return size
}

// typeOf resolves optional fields, for which the estimator has no paths. It returns nil if the type
// is unknown.
func (e *sizeEstimator) typeOf(expr ast.Expr) *apiservercel.DeclType {
	switch expr.Kind() {
	case ast.IdentKind:
		switch expr.AsIdent() {
		case expression.Self:
			return e.self
		case expression.Metadata:
			return expression.MetadataType
		}
		if of := e.ranges[expr.AsIdent()]; of != nil {
			return memberType(e.typeOf(of), "@items")
		}
	case ast.SelectKind:
		return memberType(e.typeOf(expr.AsSelect().Operand()), expr.AsSelect().FieldName())
	case ast.CallKind:
		call := expr.AsCall()
		switch call.FunctionName() {
		case operators.OptSelect:
			name, _ := call.Args()[1].AsLiteral().Value().(string)
			return memberType(e.typeOf(call.Args()[0]), name)
		case operators.OptIndex, operators.Index:
			return memberType(e.typeOf(call.Args()[0]), "@items")
		case "or", "orValue", "value":
			return e.typeOf(call.Target())
		case "dyn", "optional.of", "optional.ofNonZeroValue":
			return e.typeOf(call.Args()[0])
		}
	}
	return nil
}

// totalSize returns the size of a value with everything in it.
func totalSize(t *apiservercel.DeclType) uint64 {
	size := sizeOf(t)
	switch {
	case t.IsList() || t.IsMap():
		size = times(size, max(totalSize(t.ElemType), 1))
	case t.IsObject():
		for _, field := range t.Fields {
			size = plus(size, totalSize(field.Type))
		}
	}
	return size
}

// isScalar reports whether the estimator knows the size of a type itself.
func isScalar(t *types.Type) bool {
	switch t.Kind() {
	case types.StringKind, types.BytesKind, types.ListKind, types.MapKind, types.StructKind, types.DynKind, types.OpaqueKind:
		return false
	}
	return true
}

// EstimateCallCost implements checker.CostEstimator. The libraries know the costs of their calls.
func (e *sizeEstimator) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// memberType returns the type of a part of a value, nil if it is unknown.
func memberType(parent *apiservercel.DeclType, name string) *apiservercel.DeclType {
	if parent == nil {
		return nil
	}
	switch name {
	case "@items", "@values":
		return parent.ElemType
	case "@keys":
		return parent.KeyType
	}
	field, found := parent.Fields[name]
	if !found {
		escaped, _ := apiservercel.Escape(name)
		if field, found = parent.Fields[escaped]; !found {
			return nil
		}
	}
	return field.Type
}

func sizeOf(t *apiservercel.DeclType) uint64 { return uint64(max(t.MaxElements, 0)) }

// times and plus saturate at the largest number.
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
