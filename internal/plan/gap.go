// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// A gap is the time in which a CustomResourceDefinition serves several versions
// with the strategy None. A policy that comes first leaves none. Where there was
// one, status.gap says when, and which objects were written in it: their data may
// be what nobody has converted.
//
// What can be known is limited. An API server does not tell in which version an
// object is stored; managedFields tell at which version somebody wrote, and when,
// to the second, unless somebody removed them.

// CountWrites lists the metadata of all objects and counts those that were
// written in a gap.
type CountWrites struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	// Reader is the user that may list the objects.
	Reader       string
	Since, Until time.Time
	// Storage is the version in which objects were stored throughout: writes at it
	// are right. Empty where it changed: any write may be wrong then.
	Storage string
}

// Warn makes a Warning event on the policy and on the CustomResourceDefinition.
type Warn struct {
	CRD          *apiextensionsv1.CustomResourceDefinition
	Reason, Note string
}

func (CountWrites) step() {}
func (Warn) step()        {}

// measureGap opens a gap, closes it, and has the writes in it counted.
func (s *state) measureGap() {
	if s.CRD == nil || s.recreated() {
		s.plan.Status.Gap = nil
	}
	if s.CRD == nil {
		return
	}
	gap, served := s.plan.Status.Gap, crds.ServedVersions(s.CRD)
	switch open := s.unconverted() && !s.none() && len(served) > 1; {
	case open && (gap == nil || gap.Until != nil):
		s.openGap(served)
	case open:
		gap.ServedVersions = served
	case gap != nil && gap.Until == nil && s.armed:
		gap.Until = s.second()
	case gap != nil && gap.Until == nil:
		s.plan.Status.Gap = nil // another converter, or one version again
	case gap != nil && gap.Written == nil && s.armed && !s.Policy.Spec.Suspend && s.Policy.DeletionTimestamp.IsZero():
		s.countWrites(gap)
	}
}

func (s *state) openGap(served []string) {
	s.plan.Status.Gap = &v1alpha1.GapStatus{Since: s.gapSince(), ServedVersions: served}
	if s.drifted {
		return // of which it is told elsewhere
	}
	s.do(Warn{s.CRD, v1alpha1.ReasonServedUnconverted, fmt.Sprintf(
		"the CustomResourceDefinition serves %s with conversion strategy None: until the converter of policy %s is armed, "+
			"what is written at one of them is read at another without a conversion", strings.Join(served, ", "), s.Policy.Name)})
}

// gapSince is when the gap began: where the change was seen, the latest write of
// the CustomResourceDefinition; and else its creation, as nobody knows.
func (s *state) gapSince() metav1.Time {
	before := s.Policy.Status.CRD
	if before == nil || before.UID != s.CRD.UID || len(before.ServedVersions) > 1 && before.Strategy == string(apiextensionsv1.NoneConverter) {
		return s.CRD.CreationTimestamp
	}
	since := s.CRD.CreationTimestamp
	for _, entry := range s.CRD.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(since.Time) {
			since = *entry.Time
		}
	}
	return since
}

func (s *state) recreated() bool {
	before := s.Policy.Status.CRD
	return before != nil && before.UID != s.CRD.UID
}

func (s *state) countWrites(gap *v1alpha1.GapStatus) {
	subject := gap.Since.UTC().Format(time.RFC3339) + " " + gap.Until.UTC().Format(time.RFC3339)
	asked := s.Written
	switch {
	case s.mayNotRead() != "": // it is counted once that is granted
	case asked == nil || asked.Subject != subject || !asked.Asking && asked.Reason != "" && s.due(asked):
		s.sampling = true
		for _, right := range s.readRights() {
			s.do(Apply{right})
		}
		s.do(CountWrites{Subject: subject, CRD: s.CRD, Reader: ReaderName(s.Policy.Name, s.Settings.Namespace),
			Since: gap.Since.Time, Until: gap.Until.Time, Storage: s.storedThroughout()})
	case asked.Asking:
	case asked.Reason == "":
		gap.Written, gap.Objects = new(int64(asked.Objects)), asked.Names
		if asked.Objects > 0 {
			s.do(Warn{s.CRD, v1alpha1.ReasonWrittenUnconverted, gapNote(gap)})
		}
	}
}

// storedThroughout is the version in which every object was stored during the
// gap, or empty.
func (s *state) storedThroughout() string {
	if storage := crds.StorageVersion(s.CRD); crds.StoredOnlyIn(s.CRD, storage) {
		return storage
	}
	return ""
}

func gapNote(gap *v1alpha1.GapStatus) string {
	names := strings.Join(gap.Objects, ", ")
	if *gap.Written > int64(len(gap.Objects)) {
		names += " and more"
	}
	return fmt.Sprintf("%d objects were written between %s and %s, while %s were served without a conversion: %s: look whether their data is complete",
		*gap.Written, gap.Since.UTC().Format(time.RFC3339), gap.Until.UTC().Format(time.RFC3339), strings.Join(gap.ServedVersions, " and "), names)
}

// second is now, as exact as a status keeps it.
func (s *state) second() *metav1.Time { return new(metav1.NewTime(s.Now).Rfc3339Copy()) }
