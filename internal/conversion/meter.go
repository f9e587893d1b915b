// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/conversion/expression"
)

// The work of a conversion is counted in units, and not timed: the same object
// always takes the same.
const (
	// scopeUnits is what an object, or an element of a list or map, takes by itself.
	scopeUnits = 16
	// placeUnits is what each byte takes of a place that is written to be preserved:
	// it takes memory, too, and is as long as the names above it.
	placeUnits = 4
	// widthUnits are the bytes of a place that is looked up, for a unit.
	widthUnits = 4
	// costUnits are the units of an expression's cost, for a unit.
	costUnits = 64
	// workLimit is the most that one object may take. The most elements that an API
	// server accepts in an object of 3 MiB, a million, take an eighth of it for each
	// of the two steps from a spoke through the hub to another one.
	workLimit = 128 << 20
	// stopUnits are the units between two checks whether to stop.
	stopUnits = 16 << 10
)

// ErrStopped is the error of a conversion that was told to stop.
var ErrStopped = errors.New("the conversion was stopped before its end")

// BudgetError refuses an object whose conversion takes more work than an object
// may. Its text is for the person who asked for the object.
type BudgetError struct {
	// Field is what was being computed by a cel rule, empty where it was not an
	// expression that took so much.
	Field string
	// Cost is what was spent, and Limit what an object may take: units of cost of
	// expressions, or units of work.
	Cost, Limit int64
}

func (e *BudgetError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("its conversion takes more than the %d units of work that an object may: truncate its lists and maps, and the names in them", e.Limit)
	}
	return fmt.Sprintf("its cel rules cost %d with that of %s, and all for one object may cost %d: truncate the lists, maps and texts that they read, or write shorter expressions",
		e.Cost, e.Field, e.Limit)
}

// meter counts the work of the conversion of one object, whatever is converted on
// the way, and ends it.
type meter struct {
	// left is the work up to the next look, spent that up to the last one.
	left, spent int64
	// stop tells whether to stop. It may be nil.
	stop func() bool
	// expressions is what the expressions have cost.
	expressions expression.Budget
	// err is why the conversion has ended.
	err error
}

// start begins to count.
func (h *step) start(stop func() bool) {
	h.own = meter{left: stopUnits, stop: stop}
	h.meter = &h.own
}

// another is a step for something that is converted on the way, on the same
// account. It is to be released.
func (h *step) another() *step {
	other := stepPool.Get().(*step)
	other.meter, other.whole = h.meter, h.whole
	return other
}

// spend counts work, and reports whether the conversion has ended: what it does
// from then on is for nothing, and should not be much.
func (h *step) spend(units int) (ended bool) {
	m := h.meter
	if m.left -= int64(units); m.left > 0 {
		return false
	}
	return m.look()
}

// look finds out whether the conversion is to end.
func (m *meter) look() (ended bool) {
	if m.err != nil {
		return true
	}
	m.spent += stopUnits - m.left
	m.left = stopUnits
	switch {
	case m.spent > workLimit:
		m.end(&BudgetError{Cost: m.spent, Limit: workLimit})
	case m.stop != nil && m.stop():
		m.end(ErrStopped)
	}
	return m.err != nil
}

// end ends the conversion. Nothing is left, so that whatever is spent meets a look.
func (m *meter) end(err error) { m.left, m.err = 0, err }
