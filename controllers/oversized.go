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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	objects "github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

const (
	// maxOversizedFields bounds how many fields of an object are named.
	maxOversizedFields = 5
	// maxOversizedField bounds the length of each, in bytes.
	maxOversizedField = 256
	// smallObject is a size in bytes below which annotations have room for all preserved values.
	smallObject = 8 << 10
	// oversizedPrecision is the difference of times that is ignored between two reports.
	oversizedPrecision = time.Minute
)

// reportedOversized returns the objects that a pod reports as truncated. It bounds every value,
// because a pod may report anything, and converts times to this manager's clock.
func reportedOversized(reported *webhook.Failures, now time.Time) []v1alpha1.OversizedObject {
	var all []v1alpha1.OversizedObject
	for _, seen := range reported.Oversized {
		if hasOversized(all, seen.Object, seen.Version) || len(all) == maxReported || len(seen.Version) > maxVersion || len(seen.FieldsOf) > maxVersion || seen.Object == "" || len(seen.Object) > maxObject {
			continue
		}
		all = append(all, v1alpha1.OversizedObject{
			Object: seen.Object, Version: seen.Version, FieldsOf: seen.FieldsOf, Bytes: max(seen.Bytes, 0), Fields: someFields(seen.Fields),
			LastTime: metav1.NewTime(now.Add(-max(reported.Now.Sub(seen.Last), 0))),
		})
	}
	return all
}

// someFields returns as many fields as a status has room for.
func someFields(fields []string) []string {
	some := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return len(field) > maxOversizedField })
	return some[:min(len(some), maxOversizedFields)]
}

func hasOversized(rows []v1alpha1.OversizedObject, object, version string) bool {
	return slices.ContainsFunc(rows, func(row v1alpha1.OversizedObject) bool { return row.Object == object && row.Version == version })
}

// sameOversized reports whether both lists have the same objects, with times that differ by less
// than within.
func sameOversized(a, b []v1alpha1.OversizedObject, within time.Duration) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.OversizedObject) bool {
		return a.Object == b.Object && a.Version == b.Version && a.Bytes == b.Bytes && b.LastTime.Sub(a.LastTime.Time).Abs() < within
	})
}

// oversizedCount finds objects that are truncated at a version.
type oversizedCount struct {
	converter *conversion.Converter
	// found are truncated. restored were, and no longer are.
	found    []v1alpha1.OversizedObject
	restored []v1alpha1.OversizedObject
}

// newOversizedCount returns nil if the ruleset truncates nothing.
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

// add records an object from which omitted is missing, and reports whether omitted is not nil.
func (c *oversizedCount) add(object string, omitted *conversion.Omitted) bool {
	if omitted == nil {
		return false
	}
	if !hasOversized(c.found, object, omitted.At) && len(c.found) < maxReported {
		c.found = append(c.found, v1alpha1.OversizedObject{
			Object: object, Version: omitted.At, FieldsOf: omitted.Version, Fields: someFields(omitted.Fields),
			Bytes: int64(omitted.Bytes), LastTime: metav1.Now(),
		})
	}
	return true
}

// gatherOversized reads the metadata of objects at all served versions, and rereads the known
// oversized objects that were not among them. An object that cannot be read stays known.
func (r *reader) gatherOversized(ctx context.Context, s step.TakeSamples, c *oversizedCount) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	cluster, err := r.connect(s.Reader)
	if err != nil {
		return // the samples report the same error
	}
	for _, version := range crds.ServedVersions(s.CRD) {
		count := 0
		// An error says nothing about the objects.
		_ = cluster.Heads(ctx, crds.Resource(s.CRD, version), func(head live.Head) bool {
			c.add(head.String(), c.converter.OmittedBy(version, head.Annotations))
			count++
			return count < maxHeads && len(c.found) < maxReported
		})
	}
	for _, row := range s.Oversized {
		if !hasOversized(c.found, row.Object, row.Version) {
			c.reread(ctx, cluster, s, row)
		}
	}
}

func (c *oversizedCount) reread(ctx context.Context, cluster *live.Cluster, s step.TakeSamples, row v1alpha1.OversizedObject) {
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
		c.restored = append(c.restored, row)
	}
}

// isOversized reports whether the converter pods truncate an object at another version. That is
// not a data loss: readers are warned, and admission refuses to store the truncated form.
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
