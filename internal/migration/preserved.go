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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// Converters preserve in annotations what a version of an object cannot express. When rules or
// schemas change so that such a value has a field in the storage version, a write at the version of
// the value restores it: the API server reads the object at that version, where converters restore
// preserved values, and stores the result.

// Inventory reads the values that converters preserved in annotations.
type Inventory struct {
	converter *conversion.Converter
	places    *conversion.Places
	ruleset   string
	// resource is plural.group.
	resource string
}

// NewInventory returns an Inventory for a ruleset, and objects that are stored at a version.
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
func ReadInventory(ctx context.Context, rulesets Rulesets, spec *contract.Spec, clock Clock) (*Inventory, error) {
	var text []byte
	err := retry(ctx, clock, func() (err error) {
		text, err = rulesets.Ruleset(ctx, spec.RulesetConfigMap, spec.Ruleset)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the rules in ConfigMap %s: %w", spec.RulesetConfigMap, err)
	}
	inventory, err := NewInventory(text, spec.Resource.Version)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("Preserved values are not counted: the ruleset cannot be read", "configMap", spec.RulesetConfigMap, "rulesetHash", spec.Ruleset, "cause", err.Error())
		return nil, nil
	}
	return inventory, nil
}

// rulesetHash returns the hash of the ruleset, or an empty string without one.
func (i *Inventory) rulesetHash() string {
	if i == nil {
		return ""
	}
	return i.ruleset
}

// preservedIn returns the values that the annotations of an object preserve.
func (i *Inventory) preservedIn(object *metav1.PartialObjectMetadata) []conversion.Preserved {
	if i == nil || len(object.Annotations) == 0 {
		return nil
	}
	return i.converter.PreservedIn(object.Annotations)
}

// truncated returns why an object must not be written at the version at which it was read: it lacks
// values that have no room in its annotations but are still in etcd. API servers refuse such a
// write too, unless the admission webhook was removed.
func (i *Inventory) truncated(object *metav1.PartialObjectMetadata, version string) error {
	if i == nil || len(object.Annotations) == 0 {
		return nil
	}
	if omitted := i.converter.OmittedBy(version, object.Annotations); omitted != nil {
		return &conversion.TooLargeError{Omitted: omitted}
	}
	return nil
}

// restorable returns the versions of the preserved values that have a field now.
func (i *Inventory) restorable(object *metav1.PartialObjectMetadata) []string {
	var versions []string
	for _, preserved := range i.preservedIn(object) {
		hasField := func(field string) bool { return i.places.Of(preserved.Version, field) != conversion.NoPlace }
		if slices.ContainsFunc(preserved.Values, hasField) {
			versions = append(versions, preserved.Version)
		}
	}
	return versions
}

// notRestored names a value that has a field and is still in the annotation, although the object
// was written at its version. It returns an empty string if there is none.
func (i *Inventory) notRestored(object *metav1.PartialObjectMetadata, version string) string {
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

// restoration is the result of restoring the preserved values of an object.
type restoration struct {
	// object has the resourceVersion after the writes.
	object *metav1.PartialObjectMetadata
	// restored is true if a write changed the stored object, and gone if the object was deleted.
	restored, gone bool
	// written are the versions at which the API server accepted the object. The values of the
	// versions in refused remain in the annotations.
	written []string
	refused []contract.Refusal
}

// restorePreserved writes an object at each version of which it preserves values that have a field
// now.
func (e *Engine) restorePreserved(ctx context.Context, object *metav1.PartialObjectMetadata, barrier string) (restoration, error) {
	p := restoration{object: object}
	for _, version := range e.Inventory.restorable(object) {
		at, unserved := e.roundTrip(version)
		if unserved != nil {
			unserved.Object = keyOf(object)
			p.refused = append(p.refused, contract.Refusal{MigrationFailure: *unserved, Version: version})
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
			p.refused = append(p.refused, contract.Refusal{MigrationFailure: r.failure(), Version: version})
			continue
		}
		p.restored = p.restored || r.outcome == rewritten
		p.written = append(p.written, version)
		if r.after != nil {
			// The answer is the object at another version. Only what addresses it is used.
			p.object = object.DeepCopy()
			p.object.ResourceVersion, p.object.ManagedFields = r.after.ResourceVersion, r.after.ManagedFields
		}
	}
	return p, nil
}

// addNotRestored adds the values that were not restored although the object was written at their
// version: they violate the schema, and the API server does not report that.
func (e *Engine) addNotRestored(p *restoration, object *metav1.PartialObjectMetadata) {
	for _, version := range p.written {
		if why := e.Inventory.notRestored(object, version); why != "" {
			p.refused = append(p.refused, contract.Refusal{Version: version, MigrationFailure: v1alpha1.MigrationFailure{Object: keyOf(object),
				Reason: v1alpha1.FailureDoesNotFit, Message: truncate(why, maxMessage), Command: e.suggest(v1alpha1.FailureDoesNotFit, object)}})
		}
	}
}

// roundTrip returns the version at which a write restores the values of a version. Only a
// conversion restores values, so for the storage version it is any other version.
func (e *Engine) roundTrip(version string) (at string, unserved *v1alpha1.MigrationFailure) {
	switch {
	case slices.Contains(e.OldVersions, version):
		return version, nil
	case version == e.Resource.Version && len(e.OldVersions) > 0:
		return e.OldVersions[0], nil
	}
	return "", &v1alpha1.MigrationFailure{Reason: v1alpha1.FailureNotServed, Message: fmt.Sprintf("version %s is not served, so that nothing can be restored there", version)}
}

// withPreserved adds what the annotations of the object preserve after the write, by the last
// answer at the storage version. That is unknown for a failed object, which is not stored there.
func (e *Engine) withPreserved(r result, object *metav1.PartialObjectMetadata) result {
	if r.after != nil {
		object, r.after = r.after, nil
	}
	if e.Inventory != nil && (r.outcome == rewritten || r.outcome == current) {
		r.counted, r.preserved = true, e.Inventory.preservedIn(object)
	}
	return r
}

// wasRestored reports whether values that have a field are no longer preserved. A write may have
// changed the stored object for another reason.
func (i *Inventory) wasRestored(before, after *metav1.PartialObjectMetadata) bool {
	left := i.preservedIn(after)
	return slices.ContainsFunc(i.preservedIn(before), func(of conversion.Preserved) bool {
		return slices.ContainsFunc(of.Values, func(field string) bool {
			return i.places.Of(of.Version, field) != conversion.NoPlace && !slices.ContainsFunc(left, func(still conversion.Preserved) bool {
				return still.Version == of.Version && slices.Contains(still.Values, field)
			})
		})
	})
}

// countPreserved adds the preserved values of a page to the record.
func countPreserved(r *contract.Record, page []result) {
	for i := range page {
		one := &page[i]
		if one.counted {
			if r.Preserved == nil {
				r.Preserved = &conversion.Holdings{}
			}
			r.Preserved.Add(one.object, one.preserved)
		}
		if one.restored {
			r.Placed++
		}
		if len(one.refused) > 0 {
			r.Unplaced++
			room := contract.MaxFailures - len(r.Refused)
			r.Refused = append(r.Refused, one.refused[:min(room, len(one.refused))]...)
		}
	}
}

// resetPreserved resets the count.
func resetPreserved(r *contract.Record) {
	r.Preserved, r.PreservedSince, r.Placed, r.Unplaced, r.Refused = nil, nil, 0, 0, nil
}

// continuePreserved continues the count of an earlier run.
func continuePreserved(r, earlier *contract.Record) {
	r.Preserved, r.Placed, r.Unplaced, r.Refused = earlier.Preserved.Clone(), earlier.Placed, earlier.Unplaced, slices.Clone(earlier.Refused)
	r.PreservedSince = earlier.CountedFrom()
}

// matchRuleset disables the count if the run started with another ruleset, so that a count is
// always by one ruleset.
func (e *Engine) matchRuleset(record *contract.Record) {
	if record.Ruleset == e.Inventory.rulesetHash() {
		return
	}
	record.Ruleset, e.Inventory = "", nil
	resetPreserved(record)
}
