// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Owners returns the indexes of the ownerReferences that name a version which goes.
func (t *Target) Owners(references []metav1.OwnerReference) []int {
	var found []int
	for i := range references {
		if _, names := t.Names(references[i].APIVersion, references[i].Kind); names {
			found = append(found, i)
		}
	}
	return found
}

// OfOwners returns the dependents of an object by its ownerReferences.
func (t *Target) OfOwners(object Object, references []metav1.OwnerReference) []Dependent {
	var found []Dependent
	for _, i := range t.Owners(references) {
		version, _ := t.Names(references[i].APIVersion, references[i].Kind)
		found = append(found, Dependent{
			Dependency: OwnerReference, Impact: Breaks, Object: object, Version: version, Repairable: true,
			Field:  fmt.Sprintf(".metadata.ownerReferences[%d].apiVersion", i),
			Effect: fmt.Sprintf("garbage collection cannot resolve its owner %s %s: it does not delete the object after its owner, and may delete others that are created with this owner", t.Kind, references[i].Name),
			Cure:   fmt.Sprintf("move the controller that sets it to %s, then run the command with --repair", t.To),
		})
	}
	return found
}
