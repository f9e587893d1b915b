// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activation decides when spec.conversion of a CustomResourceDefinition changes.
//
// Before the change, four things must hold: no other client owns the field
// (ownership.go); the converter needs no objects that it is to convert (there, too);
// every endpoint of the converter, live objects and an API server have verified the
// conversion (verified.go, proofs.go); and API servers refuse objects that are too large
// to be converted (admission.go). configured.go then makes the change.
// After that, drift.go repairs or reports changes by other clients, and window.go counts
// the objects that clients wrote before the conversion was active.
//
// It reads what packages converter and certificates have decided.
package activation
