// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	objects "github.com/conversion-operator/conversion-operator/internal/manifest"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

const (
	// maxOversizedFields bounds the fields that are named of an object.
	maxOversizedFields = 5
	// maxOversizedField bounds each of them, in bytes.
	maxOversizedField = 256
	// smallObject is too small to have too much to preserve, in bytes.
	smallObject = 8 << 10
	// oversizedPrecision is by how much two tellings of the same may differ.
	oversizedPrecision = time.Minute
)

// oversizedTold is what a pod tells of objects that it answered in a truncated form.
// Its clock may be another, and what it tells may have been made up.
func oversizedTold(told *webhook.Failures, now time.Time) []v1alpha1.OversizedObject {
	var all []v1alpha1.OversizedObject
	for _, seen := range told.Oversized {
		if hasOversized(all, seen.Object, seen.Version) || len(all) == maxHeard || len(seen.Version) > maxVersion || len(seen.FieldsOf) > maxVersion || seen.Object == "" || len(seen.Object) > maxObject {
			continue
		}
		all = append(all, v1alpha1.OversizedObject{
			Object: seen.Object, Version: seen.Version, FieldsOf: seen.FieldsOf, Bytes: max(seen.Bytes, 0), Fields: someFields(seen.Fields),
			LastTime: metav1.NewTime(now.Add(-max(told.Now.Sub(seen.Last), 0))),
		})
	}
	return all
}

// someFields are as many as a status has room for.
func someFields(fields []string) []string {
	some := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return len(field) > maxOversizedField })
	return some[:min(len(some), maxOversizedFields)]
}

func hasOversized(rows []v1alpha1.OversizedObject, object, version string) bool {
	return slices.ContainsFunc(rows, func(row v1alpha1.OversizedObject) bool { return row.Object == object && row.Version == version })
}

// sameOversized reports that nothing more was seen, but the same within a time.
func sameOversized(a, b []v1alpha1.OversizedObject, within time.Duration) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.OversizedObject) bool {
		return a.Object == b.Object && a.Version == b.Version && a.Bytes == b.Bytes && b.LastTime.Sub(a.LastTime.Time).Abs() < within
	})
}

// oversizedCount finds objects that have no whole form at a version.
type oversizedCount struct {
	converter *conversion.Converter
	found     []v1alpha1.OversizedObject
	whole     []v1alpha1.OversizedObject
}

// newOversizedCount is nil where nothing is truncated.
func newOversizedCount(s step.TakeSamples) *oversizedCount {
	rules := s.Rules.Ruleset
	if rules == nil || rules.Truncating == nil || rules.Truncating.RefuseOnly {
		return nil
	}
	converter, err := conversion.NewConverter(rules)
	if err != nil {
		return nil
	}
	return &oversizedCount{converter: converter}
}

// add notes an object that lacks something; nil is nothing.
func (c *oversizedCount) add(object string, omitted *conversion.Omitted) bool {
	if omitted == nil {
		return false
	}
	if !hasOversized(c.found, object, omitted.At) && len(c.found) < maxHeard {
		c.found = append(c.found, v1alpha1.OversizedObject{
			Object: object, Version: omitted.At, FieldsOf: omitted.Version, Fields: someFields(omitted.Fields),
			Bytes: int64(omitted.Bytes), LastTime: metav1.Now(),
		})
	}
	return true
}

// gatherOversized reads the metadata of objects at the versions at which they may be truncated, and
// those again that are known and were not among them. What cannot be read stays known.
func (r *reader) gatherOversized(ctx context.Context, s step.TakeSamples, c *oversizedCount) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	cluster, err := r.connect(s.Reader)
	if err != nil {
		return // as samples, of which it is told
	}
	for _, version := range crds.ServedVersions(s.CRD) {
		count := 0
		// That it fails says nothing of the objects.
		_ = cluster.Heads(ctx, crds.Resource(s.CRD, version), func(head live.Head) bool {
			c.add(head.String(), c.converter.OmittedBy(version, head.Annotations))
			count++
			return count < maxHeads && len(c.found) < maxHeard
		})
	}
	for _, row := range s.Oversized {
		if !hasOversized(c.found, row.Object, row.Version) {
			c.readAgain(ctx, cluster, s, row)
		}
	}
}

func (c *oversizedCount) readAgain(ctx context.Context, cluster *live.Cluster, s step.TakeSamples, row v1alpha1.OversizedObject) {
	namespace, name, namespaced := strings.Cut(row.Object, "/")
	if !namespaced {
		namespace, name = "", row.Object
	}
	object, found, err := cluster.Object(ctx, crds.Resource(s.CRD, row.Version), namespace, name)
	switch {
	case err != nil:
		row.LastTime = metav1.Now()
		c.found = append(c.found, row)
	case !found || !c.add(row.Object, c.converter.OmittedIn(object.JSON)):
		c.whole = append(c.whole, row)
	}
}

// isOversized reports whether an object has no whole form at another version, by what
// the converter pods make of it. It is no loss: readers are told, and no one stores it.
func (s *sampler) isOversized(object objects.Object, next step.TakeSamples, count *oversizedCount) bool {
	if count == nil || len(object.JSON) < smallObject {
		return false
	}
	oversized := false
	for i := range next.CRD.Spec.Versions {
		converted, err := s.library.Convert(nil, object.JSON, next.CRD.Spec.Versions[i].Name)
		if err == nil {
			oversized = count.add(object.String(), count.converter.OmittedIn(converted)) || oversized
		}
	}
	return count.converter.OmittedIn(object.JSON) != nil || oversized
}
