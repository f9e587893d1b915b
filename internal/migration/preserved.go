// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// Converters preserve in annotations what a version of an object cannot express. When
// rules or schemas change so that such a value has a field in the storage version, a
// write at the version of the value restores it: the API server reads the object at
// that version, where converters restore preserved values, and stores the result.

// Inventory reads the values that converters preserved in annotations.
type Inventory struct {
	converter *conversion.Converter
	places    *conversion.Places
	ruleset   string
	// resource is plural.group.
	resource string
}

// NewInventory reads a ruleset, by which objects that are stored at a version convert.
func NewInventory(ruleset []byte, storage string) (*Inventory, error) {
	plan, err := conversion.Load(ruleset)
	if err != nil {
		return nil, err
	}
	i := &Inventory{ruleset: conversion.HashOf(ruleset), resource: plan.CRD}
	if i.converter, err = conversion.NewConverter(plan); err != nil {
		return nil, err
	}
	i.places, err = conversion.NewPlaces(plan, storage)
	return i, err
}

// ReadInventory reads the ruleset of a ConfigMap. If the ruleset is gone or unusable,
// it returns nil and logs why: the run continues and does not count preserved values.
func ReadInventory(ctx context.Context, rulesets Rulesets, name, storage string, clock Clock) (*Inventory, error) {
	var text []byte
	err := patiently(ctx, clock, func() (err error) {
		text, err = rulesets.Ruleset(ctx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the rules in ConfigMap %s: %w", name, err)
	}
	inventory, err := NewInventory(text, storage)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("Preserved values are not counted: the ruleset cannot be read", "configMap", name, "cause", err.Error())
		return nil, nil
	}
	return inventory, nil
}

// rulesetHash identifies the ruleset; empty where there is none.
func (i *Inventory) rulesetHash() string {
	if i == nil {
		return ""
	}
	return i.ruleset
}

// preservedIn are the values that the annotations of an object preserve.
func (i *Inventory) preservedIn(object *metav1.PartialObjectMetadata) []conversion.Preserved {
	if i == nil || len(object.Annotations) == 0 {
		return nil
	}
	return i.converter.PreservedIn(object.Annotations)
}

// truncated says why an object must not be written at the version at which it was
// read: it lacks values that had no room in its annotations and are still in etcd. API
// servers also refuse such a write, unless the check was removed.
func (i *Inventory) truncated(object *metav1.PartialObjectMetadata, version string) error {
	if i == nil || len(object.Annotations) == 0 {
		return nil
	}
	if omitted := i.converter.OmittedBy(version, object.Annotations); omitted != nil {
		return &conversion.TooLargeError{Omitted: omitted}
	}
	return nil
}

// placeable are the versions of which an object preserves values that have a field
// now.
func (i *Inventory) placeable(object *metav1.PartialObjectMetadata) []string {
	var versions []string
	for _, held := range i.preservedIn(object) {
		hasPlace := func(field string) bool { return i.places.Of(held.Version, field) != conversion.NoPlace }
		if slices.ContainsFunc(held.Values, hasPlace) {
			versions = append(versions, held.Version)
		}
	}
	return versions
}

// unplaced names a value that has a field and is still in the annotation, though the
// object was written at its version; empty where there is none.
func (i *Inventory) unplaced(object *metav1.PartialObjectMetadata, version string) string {
	for _, one := range i.converter.Unplaced(object.Annotations, version) {
		if i.places.Of(version, one.Field) != conversion.WholePlace {
			continue
		}
		why := "it did not come back when the object was written there; the object or list element around it may be gone"
		if one.Misfit != nil {
			why = "the schema does not allow it: " + one.Misfit.Error()
		}
		return fmt.Sprintf("at %s: the value of %s stays in the annotation %s: %s",
			version, one.Field, conversion.AnnotationName(i.resource, version), why)
	}
	return ""
}

// placing is the result of restoring the preserved values of an object.
type placing struct {
	// object has the resourceVersion that the writes left.
	object *metav1.PartialObjectMetadata
	// placed tells that a write changed what is stored, and gone that the object was
	// deleted.
	placed, gone bool
	// written are the versions at which the API server accepted the object. The values
	// of the versions in refused stay in the annotations.
	written []string
	refused []v1alpha1.MigrationFailure
}

// place writes an object at each version of which it preserves values that have a
// field.
func (e *Engine) place(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (placing, error) {
	p := placing{object: object}
	for _, version := range e.Inventory.placeable(object) {
		at, unserved := e.roundTrip(version)
		if unserved != nil {
			unserved.Object, unserved.Version = keyOf(object), version
			p.refused = append(p.refused, *unserved)
			continue
		}
		r, err := e.persist(ctx, p.object, Patch{Version: at}, barrier)
		switch {
		case err != nil:
			return p, err
		case r.outcome == gone:
			p.gone = true
			return p, nil
		case r.outcome == failed:
			logr.FromContextOrDiscard(ctx).V(1).Info("Preserved values cannot be restored", "object", r.object, "version", at, "message", r.message)
			failure := r.failure()
			failure.Version = version
			p.refused = append(p.refused, failure)
			continue
		}
		p.placed = p.placed || r.outcome == rewritten
		p.written = append(p.written, version)
		if r.after != nil {
			// What it is at another version says nothing but how it can be addressed.
			p.object = object.DeepCopy()
			p.object.ResourceVersion, p.object.ManagedFields = r.after.ResourceVersion, r.after.ManagedFields
		}
	}
	return p, nil
}

// noteUnplaced adds the values that were not restored although the object was written
// at their version: they do not fit, and the API server does not report that.
func (e *Engine) noteUnplaced(p *placing, object *metav1.PartialObjectMetadata) {
	for _, version := range p.written {
		if why := e.Inventory.unplaced(object, version); why != "" {
			p.refused = append(p.refused, v1alpha1.MigrationFailure{Object: keyOf(object), Version: version, Reason: ReasonDoesNotFit,
				Message: truncate(why, maxMessage), Command: e.suggest(ReasonDoesNotFit, object)})
		}
	}
}

// roundTrip is the version at which a write restores values of a version: that one, or
// any other if objects are stored in it, as only a conversion restores values.
func (e *Engine) roundTrip(version string) (at string, unserved *v1alpha1.MigrationFailure) {
	switch {
	case slices.Contains(e.OldVersions, version):
		return version, nil
	case version == e.Resource.Version && len(e.OldVersions) > 0:
		return e.OldVersions[0], nil
	}
	return "", &v1alpha1.MigrationFailure{Reason: ReasonNotServed, Message: fmt.Sprintf("version %s is not served, so that nothing can be restored there", version)}
}

// notePreserved adds what the annotations of an object preserve after the write, as
// the API server returned it last at the storage version. For a failed object that is
// not known: it is not stored there.
func (e *Engine) notePreserved(r result, object *metav1.PartialObjectMetadata) result {
	if r.after != nil {
		object, r.after = r.after, nil
	}
	if e.Inventory != nil && (r.outcome == rewritten || r.outcome == current) {
		r.counted, r.preserved = true, e.Inventory.preservedIn(object)
	}
	return r
}

// wasPlaced reports whether values that had a field are no longer preserved. A write
// that changed what is stored may have done so for the storage version alone.
func (i *Inventory) wasPlaced(before, after *metav1.PartialObjectMetadata) bool {
	left := i.preservedIn(after)
	return slices.ContainsFunc(i.preservedIn(before), func(of conversion.Preserved) bool {
		return slices.ContainsFunc(of.Values, func(field string) bool {
			return i.places.Of(of.Version, field) != conversion.NoPlace && !slices.ContainsFunc(left, func(still conversion.Preserved) bool {
				return still.Version == of.Version && slices.Contains(still.Values, field)
			})
		})
	})
}

// countPreserved adds what the objects of a page preserve.
func countPreserved(r *contract.Record, page []result) {
	for i := range page {
		one := &page[i]
		if one.counted {
			if r.Preserved == nil {
				r.Preserved = &conversion.Holdings{}
			}
			r.Preserved.Add(one.object, one.preserved)
		}
		if one.placed {
			r.Placed++
		}
		if len(one.refused) > 0 {
			r.Unplaced++
			room := contract.MaxFailures - len(r.Refused)
			r.Refused = append(r.Refused, one.refused[:min(room, len(one.refused))]...)
		}
	}
}

// forgetPreserved sets the count back to zero.
func forgetPreserved(r *contract.Record) {
	r.Preserved, r.PreservedSince, r.Placed, r.Unplaced, r.Refused = nil, nil, 0, 0, nil
}

// takePreserved continues the count of an earlier run.
func takePreserved(r, earlier *contract.Record) {
	r.Preserved, r.Placed, r.Unplaced, r.Refused = earlier.Preserved.Clone(), earlier.Placed, earlier.Unplaced, slices.Clone(earlier.Refused)
	r.PreservedSince = earlier.CountedFrom()
}

// matchRuleset makes a run count by one ruleset from beginning to end, or not at all.
func (e *Engine) matchRuleset(record *contract.Record) {
	if record.Ruleset == e.Inventory.rulesetHash() {
		return
	}
	record.Ruleset, e.Inventory = "", nil
	forgetPreserved(record)
}
