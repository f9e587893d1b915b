// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
)

// Work is counted in units and not timed: the same object always takes the same work.
const (
	// documentUnits is the work for each byte of a document in YAML or JSON.
	documentUnits = 2
	// workLimit is the maximum for one object. A million elements, the most that an API server
	// accepts in an object of 3 MiB, take an eighth of it in each of the two steps between spokes.
	workLimit = 128 << 20
	// costUnits is the number of CEL cost units per unit.
	costUnits = 64
	// evaluationUnits is the work for an evaluation of expressions besides its cost.
	evaluationUnits = 64
)

// Memory is estimated by what takes most of it. The numbers are bytes, such that conversions of each kind of rule
// allocate at most eight times what is counted, most of which is garbage (TestMemoryIsCounted).
const (
	// documentBytes is the memory for each byte of a document in YAML or JSON.
	documentBytes = 128
	// celBytes is the memory for each byte that an expression reads.
	celBytes = 48
)

// ErrStopped is returned by a conversion that was told to stop.
var ErrStopped = errors.New("the conversion was stopped before its end")

// BudgetError refuses an object whose conversion takes too much work. Its text is for the user who
// requested the object.
type BudgetError struct {
	// Field is the field that a cel rule was computing, empty if the limit of work was exceeded
	// elsewhere.
	Field string
	// Cost was spent, and Limit is the maximum for an object: in units of CEL cost, or in units of
	// work.
	Cost, Limit int64
}

func (e *BudgetError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("its conversion takes more than the %d units of work that an object may: truncate its lists and maps, and the names in them", e.Limit)
	}
	return fmt.Sprintf("its cel rules cost %d with that of %s, and all for one object may cost %d: truncate the lists, maps and texts that they read, or write shorter expressions",
		e.Cost, e.Field, e.Limit)
}
