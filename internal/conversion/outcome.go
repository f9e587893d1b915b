// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

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
