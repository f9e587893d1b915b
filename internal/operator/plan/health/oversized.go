// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// An object is oversized if it does not fit at a version. Converter pods find such objects when API
// servers fill their caches, and samples find them, also before the activation. An object is
// reported until it was read again and fits or no longer exists, or for a day.

const (
	// maxOversized is the maximum number of objects in the status.
	maxOversized = 20
	// OversizedLag is how far lastTime in the status may be behind.
	OversizedLag = time.Hour
	// oversizedLife is how long an object is reported that was not read again.
	oversizedLife = 24 * time.Hour
)

// reportOversized reports objects that do not fit at a version.
func (h *Health) reportOversized() {
	status := &h.Status
	if h.CRD == nil || !h.Rulesets() || h.Rules.Ruleset != nil && !h.converter.LimitsSize() {
		status.OversizedObjects = nil
	} else {
		rows := h.Rows()
		status.OversizedObjects = rows[:min(len(rows), maxOversized)]
	}
	if len(status.OversizedObjects) == 0 {
		h.forget(v1alpha1.OversizedObjectsCondition)
		return
	}
	h.report(v1alpha1.OversizedObjectsCondition, gate.Abnormal(v1alpha1.ReasonReadTruncated, describeOversized(status.OversizedObjects)))
}

// Rows are all known oversized objects: those of the status, of converter pods and of samples,
// without those that were read again and fit or no longer exist.
func (h *Health) Rows() []v1alpha1.OversizedObject {
	var rows []v1alpha1.OversizedObject
	add := func(seen []v1alpha1.OversizedObject, life time.Duration) {
		for _, row := range seen {
			row.LastTime = row.LastTime.Rfc3339Copy()
			if left := row.LastTime.Add(life).Sub(h.Now); left > 0 && !h.isWhole(row) {
				rows = addOversized(rows, row)
				h.work.Recheck(left)
			}
		}
	}
	add(h.Policy.Status.OversizedObjects, oversizedLife)
	for _, check := range []*observed.BackgroundCheck{h.Samples, h.Resampled} {
		if check != nil && !check.Running {
			add(check.Oversized, oversizedLife)
		}
	}
	for i := range h.Pods {
		add(h.Pods[i].Oversized, h.failureWindow())
	}
	slices.SortFunc(rows, compareOversized)
	return rows
}

// isWhole reports that an object was read again since, and fits or no longer exists.
func (h *Health) isWhole(row v1alpha1.OversizedObject) bool {
	found := h.Resampled
	return found != nil && !found.Running && !row.LastTime.After(found.Ended) &&
		slices.ContainsFunc(found.Whole, func(whole v1alpha1.OversizedObject) bool { return compareOversized(whole, row) == 0 })
}

// addOversized adds an object, or updates a known one.
func addOversized(rows []v1alpha1.OversizedObject, row v1alpha1.OversizedObject) []v1alpha1.OversizedObject {
	at := slices.IndexFunc(rows, func(known v1alpha1.OversizedObject) bool { return compareOversized(known, row) == 0 })
	switch {
	case at < 0:
		return append(rows, row)
	case row.LastTime.Sub(rows[at].LastTime.Time) >= OversizedLag:
		rows[at] = row
	}
	return rows
}

func compareOversized(a, b v1alpha1.OversizedObject) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Version, b.Version))
}

// describeOversized describes the first object, and what to do.
func describeOversized(known []v1alpha1.OversizedObject) string {
	row := known[0]
	fields := "fields"
	if len(row.Fields) > 0 {
		fields = strings.Join(row.Fields, ", ")
	}
	says := fmt.Sprintf("object %s does not fit at %s: %s, which only %s has, needs %d of the %d bytes for annotations; "+
		"reads at %s omit what does not fit, and API servers refuse writes at %s: reduce these fields at %s",
		row.Object, row.Version, gate.Cut(fields), row.FieldsOf, row.Bytes, maxAnnotationBytes, row.Version, row.Version, row.FieldsOf)
	if len(known) > 1 {
		says += "; see status.oversizedObjects for others"
	}
	return says
}

// maxAnnotationBytes is what the API server allows: TotalAnnotationSizeLimitB of
// k8s.io/apimachinery, pkg/api/validation.
const maxAnnotationBytes = 256 << 10
