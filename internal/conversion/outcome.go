// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "fmt"

// Outcome tells what a conversion did, besides its result. It is filled as far
// as the conversion came, also beside an error.
type Outcome struct {
	// Read is how many bytes of the text the object took.
	Read int
	// From is the version that the object was in: one of the plan's own strings,
	// or empty if the object is in none of them.
	From string
	// KeptBytes is the size of what was written into the annotation of the
	// version that the object left, 0 if nothing had to be kept aside.
	KeptBytes int
	// DroppedValues is how many values were given up because the object's
	// annotations have no room for them.
	DroppedValues int
}

// OverflowError refuses an object that has more to keep aside than its
// annotations can hold, where the policy says that nothing may be given up.
type OverflowError struct {
	// Version is the one whose values would be kept aside.
	Version string
	// Own is their size, and Total that of all annotations together, in bytes.
	Own, Total int
}

// Error implements error, in words for the person who asked for the object.
func (e *OverflowError) Error() string {
	return fmt.Sprintf("the fields that only version %s has take %d bytes, and all annotations together %d, more than the %d that an object may have: shorten the object's annotations or those fields",
		e.Version, e.Own, e.Total, maxAnnotations)
}
