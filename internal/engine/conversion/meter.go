// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
)

// Work is counted in units and not timed: the same object always takes the same work.
const (
	// scopeUnits is the work for an object, or for an element of a list or map.
	scopeUnits = 16
	// placeUnits is the work for each byte of a pointer that is preserved, which is
	// as long as the names above it.
	placeUnits = 4
	// widthUnits is the number of bytes of a looked-up pointer per unit.
	widthUnits = 4
	// documentUnits is the work for each byte of a document in YAML or JSON.
	documentUnits = 2
	// costUnits is the number of CEL cost units per unit.
	costUnits = 64
	// workLimit is the maximum for one object. A million elements, the most that an API server
	// accepts in an object of 3 MiB, take an eighth of it in each of the two steps between spokes.
	workLimit = 128 << 20
	// stopUnits is the number of units between two checks whether to stop.
	stopUnits = 16 << 10
)

// Memory is estimated by what takes most of it. The numbers are bytes, such that conversions of each kind of rule
// allocate at most eight times what is counted, most of which is garbage (TestMemoryIsCounted).
const (
	// valueBytes is the memory for each value that rules look into.
	valueBytes = 120
	// entryBytes is the memory for each preserved value besides its text.
	entryBytes = 256
	// documentBytes is the memory for each byte of a document in YAML or JSON.
	documentBytes = 128
	// celBytes is the memory for each byte that an expression reads.
	celBytes = 48
	// inflatedBytes is the memory for each byte of preserved data that was compressed, and packBytes that
	// for compressing some.
	inflatedBytes, packBytes = 3, 2 << 20
	// stopBytes is the growth between two checks whether to stop.
	stopBytes = 256 << 10
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

// meter counts the work for one object, including nested conversions, and stops them.
type meter struct {
	// untilCheck is the work until the next check; spent is the work up to the last one.
	untilCheck, spent int64
	// memory is what the conversion takes, and told what stop was told last.
	memory, told int64
	// stop reports whether to stop, by the memory that the conversion takes. It may be nil.
	stop func(memory int64) bool
	// expressions is the cost of the expressions.
	expressions expression.Budget
	// err is the reason why the conversion stopped.
	err error
}

// start starts a new meter.
func (s *step) start(stop func(memory int64) bool) {
	s.ownMeter = meter{untilCheck: stopUnits, stop: stop}
	s.meter = &s.ownMeter
}

// newNested returns a step for a nested conversion, which shares the meter. The caller releases
// it.
func (s *step) newNested() *step {
	other := stepPool.Get().(*step)
	other.meter, other.complete = s.meter, s.complete
	other.objectName, other.objectNamespace = s.objectName, s.objectNamespace
	return other
}

// spend counts work and reports whether the conversion has stopped. Then its result is not used,
// and callers should return soon.
func (s *step) spend(units int) (ended bool) {
	m := s.meter
	if m.untilCheck -= int64(units); m.untilCheck > 0 {
		return false
	}
	return m.check()
}

// spendPlace counts the work and the memory for a pointer of that many bytes.
func (s *step) spendPlace(length int) {
	s.meter.take(entryBytes + length)
	s.spend(placeUnits * length)
}

// check reports whether the conversion has to stop.
func (m *meter) check() (ended bool) {
	if m.err != nil {
		return true
	}
	m.spent += stopUnits - m.untilCheck
	m.untilCheck, m.told = stopUnits, m.memory
	switch {
	case m.spent > workLimit:
		m.end(&BudgetError{Cost: m.spent, Limit: workLimit})
	case m.stop != nil && m.stop(m.memory):
		m.end(ErrStopped)
	}
	return m.err != nil
}

// end stops the conversion. It sets untilCheck to 0, so that the next spend calls check.
func (m *meter) end(err error) { m.untilCheck, m.err = 0, err }

// untilNow returns a function that forgets the memory which is counted until it is called.
func (m *meter) untilNow() (forget func()) {
	before := m.memory
	return func() { m.memory = before }
}

// take counts memory, and stops the conversion if it may not have that.
func (m *meter) take(bytes int) {
	if m == nil {
		return
	}
	if m.memory += int64(bytes); m.memory-m.told >= stopBytes {
		m.check()
	}
}
