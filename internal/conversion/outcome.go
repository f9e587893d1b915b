// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "fmt"

// Outcome is what there is to say of the conversion of one object.
type Outcome struct {
	// Read is the number of bytes that the object took of the text.
	Read int
	// From is the version that the object was at, empty where that is unknown.
	From string
	// KeptBytes is the size of what was kept aside, in bytes of the annotation's text.
	KeptBytes int
	// DroppedValues counts the values for which the annotation had no room.
	DroppedValues int
}

// OverflowError refuses an object that has more to keep aside than its
// annotations have room for. Its text is for the person who asked for the object.
type OverflowError struct {
	// Version is the one that the object leaves.
	Version string
	// Kept is the size of what would be kept aside of it, and Others that of all
	// other annotations, in bytes.
	Kept, Others int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("the fields that only version %s has take %d bytes, and all annotations together may take %d: shorten the object's annotations, of which the others take %d, or those fields, or set overflow to Drop in the ConversionPolicy",
		e.Version, e.Kept, maxAnnotations, e.Others)
}
