// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import "k8s.io/apimachinery/pkg/types"

// Event tells of one thing that happened.
type Event struct {
	// Reason of the condition that changed, or of what happened to a migration.
	Reason string
	// Action is the type of the condition, or "Migrate".
	Action  string
	Note    string
	Warning bool
	// CRD is the CustomResourceDefinition whose author is to see it too; empty for none.
	CRD types.UID
}
