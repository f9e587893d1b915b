// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// EvaluationLimit is the most that one evaluation may cost: a tenth of what the
	// API server allows a validation rule (PerCallLimit). A unit takes about 100 ns,
	// and several times that in loops over thousands of elements.
	EvaluationLimit = celconfig.PerCallLimit / 10
	// ObjectLimit is the most that an expression may cost for all elements of one
	// object: what the API server allows the match conditions of an admission
	// webhook, for they too are in the way of every request.
	ObjectLimit = celconfig.RuntimeCELCostBudgetMatchConditions
	// BudgetLimit is the most that all evaluations for one object may cost together:
	// what a rule may by its estimate, there and back. An expression that takes a
	// text apart, or puts one together, for each element of a list, gets by in any
	// object that etcd stores. It is one to four seconds of a core at worst, of the
	// 30 that an API server waits.
	BudgetLimit = 2 * ObjectLimit
	// evaluationCost is what an evaluation costs besides its expression, whose own
	// cost counts the steps only.
	evaluationCost = 10
	// bytesPerUnit is how much of a value is read for a unit.
	bytesPerUnit = 16
)

// Budget is what the expressions of one object have cost. The zero one is full.
// It counts units of cost, and no time: the same object always costs the same.
type Budget struct{ spent int64 }

// Spent is what was spent, in units of cost.
func (b *Budget) Spent() int64 { return b.spent }

// Exhausted reports whether more was spent than there is.
func (b *Budget) Exhausted() bool { return b.spent > BudgetLimit }

// read charges what it takes to read the values.
func (b *Budget) read(values [][]byte) {
	for _, value := range values {
		b.spent += int64(len(value) / bytesPerUnit)
	}
}

// evaluated charges an evaluation. One that was stopped does not tell its cost,
// which is the limit.
func (b *Budget) evaluated(details *cel.EvalDetails) {
	b.spent += evaluationCost
	if details == nil || details.ActualCost() == nil {
		b.spent += EvaluationLimit
		return
	}
	b.spent += int64(min(*details.ActualCost(), EvaluationLimit))
}
