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

// What one version of an object cannot express, converters preserve in its
// annotations. When rules or schemas change so that it has a place in the storage
// version, a write at the version that it belongs to makes it data: the API server
// reads the object at that version, where converters restore what was preserved, and
// stores what they make of that.

// Inventory reads what objects hold in annotations.
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

// ReadInventory reads the ruleset of a ConfigMap. A run goes on without one that is gone,
// or of no use: nil, and the log says why nothing is counted.
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
		logr.FromContextOrDiscard(ctx).Info("What objects hold in annotations is not counted: there are no rules to read it by", "configMap", name, "cause", err.Error())
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

// preservedIn is what an object holds.
func (i *Inventory) preservedIn(object *metav1.PartialObjectMetadata) []conversion.Preserved {
	if i == nil || len(object.Annotations) == 0 {
		return nil
	}
	return i.converter.PreservedIn(object.Annotations)
}

// shortened says why an object must not be written at the version at which it was read:
// it lacks what its annotations have no room for, which is still in etcd. API servers
// refuse such a write, too, unless somebody keeps them from it.
func (i *Inventory) shortened(object *metav1.PartialObjectMetadata, version string) error {
	if i == nil || len(object.Annotations) == 0 {
		return nil
	}
	if omitted := i.converter.OmittedBy(version, object.Annotations); omitted != nil {
		return &conversion.TooLargeError{Omitted: omitted}
	}
	return nil
}

// placeable are the versions of which an object holds values that have a place now.
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

// unplaced says which value that an object holds of a version has a place and is not
// there, though the object was written at that version: empty where there is none.
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

// placing is what became of the values that an object held.
type placing struct {
	// object has the resourceVersion that the writes left.
	object *metav1.PartialObjectMetadata
	// placed tells that a write changed what is stored, and gone that there is no
	// such object any more.
	placed, gone bool
	// written are the versions at which the API server accepts it, and refused those at
	// which it does not. What it holds of these stays where it is.
	written []string
	refused []v1alpha1.MigrationFailure
}

// place writes an object at each version of which it holds values that have a place.
func (e *Engine) place(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (placing, error) {
	p := placing{object: object}
	for _, version := range e.Inventory.placeable(object) {
		at, unserved := e.roundTrip(version)
		if unserved != nil {
			unserved.Object = keyOf(object)
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
			logr.FromContextOrDiscard(ctx).V(1).Info("Preserved data has no way to its place", "object", r.object, "version", at, "message", r.message)
			r.message = "at " + at + ": " + r.message
			p.refused = append(p.refused, r.failure())
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

// noteUnplaced notes what an object holds in the end of versions at which it was written: values
// that do not fit are not restored, and the API server does not say so.
func (e *Engine) noteUnplaced(p *placing, object *metav1.PartialObjectMetadata) {
	for _, version := range p.written {
		if why := e.Inventory.unplaced(object, version); why != "" {
			p.refused = append(p.refused, v1alpha1.MigrationFailure{Object: keyOf(object), Reason: ReasonDoesNotFit,
				Message: shorten(why, maxMessage), Command: e.suggest(ReasonDoesNotFit, object)})
		}
	}
}

// roundTrip is the version at which a write restores data of a version: that one, or
// any other if objects are stored in it, as only a conversion restores anything.
func (e *Engine) roundTrip(version string) (at string, unserved *v1alpha1.MigrationFailure) {
	switch {
	case slices.Contains(e.OldVersions, version):
		return version, nil
	case version == e.Resource.Version && len(e.OldVersions) > 0:
		return e.OldVersions[0], nil
	}
	return "", &v1alpha1.MigrationFailure{Reason: ReasonNotServed, Message: fmt.Sprintf("version %s is not served, so that nothing can be restored there", version)}
}

// notePreserved notes what an object holds in the end: as the API server showed it last at the
// storage version. What a failed object holds is not known, as it is not stored there.
func (e *Engine) notePreserved(r result, object *metav1.PartialObjectMetadata) result {
	if r.after != nil {
		object, r.after = r.after, nil
	}
	if e.Inventory != nil && (r.outcome == rewritten || r.outcome == current) {
		r.counted, r.preserved = true, e.Inventory.preservedIn(object)
	}
	return r
}

// wasPlaced reports whether values that had a place are held no more. A write that
// changed what is stored may have done so for the storage version alone.
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

// countPreserved adds what the objects of a page hold.
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

// matchRuleset has a run count by one ruleset from its beginning to its end, or not at all.
func (e *Engine) matchRuleset(record *contract.Record) {
	if record.Ruleset == e.Inventory.rulesetHash() {
		return
	}
	record.Ruleset, e.Inventory = "", nil
	forgetPreserved(record)
}
