// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// EvaluationLimit is the maximum cost of one evaluation: a tenth of what the API server allows
	// a validation rule (PerCallLimit). A unit takes about 100 ns, and several times that in loops
	// over thousands of elements.
	EvaluationLimit = celconfig.PerCallLimit / 10
	// ObjectLimit is the maximum cost of an expression for all elements of one object: what the
	// API server allows the match conditions of an admission webhook, which also delay every
	// request.
	ObjectLimit = celconfig.RuntimeCELCostBudgetMatchConditions
	// BudgetLimit is the maximum cost of all evaluations for one object: the estimate that a rule
	// may have, for both directions. An expression that splits or joins a string for each element
	// of a list stays below it for any object that etcd stores. In the worst case, it takes one to
	// four seconds of a core, of the 30 seconds that an API server waits.
	BudgetLimit = 2 * ObjectLimit
	// evaluationCost is the cost of an evaluation besides its expression, whose own cost only
	// counts steps.
	evaluationCost = 10
	// bytesPerUnit is the number of bytes of a value that are read per unit.
	bytesPerUnit = 16
)

// Budget counts the cost of the expressions of one object, in units and not in time: the same
// object always costs the same. The zero value is an unused budget.
type Budget struct{ spent int64 }

// Spent returns the cost so far, in units.
func (b *Budget) Spent() int64 { return b.spent }

// Exhausted reports whether the cost exceeds BudgetLimit.
func (b *Budget) Exhausted() bool { return b.spent > BudgetLimit }

// chargeEvaluation charges for an evaluation. One that was stopped does not report its cost, which
// is the limit.
func (b *Budget) chargeEvaluation(details *cel.EvalDetails) {
	b.spent += evaluationCost
	if details == nil || details.ActualCost() == nil {
		b.spent += EvaluationLimit
		return
	}
	b.spent += int64(min(*details.ActualCost(), EvaluationLimit))
}
