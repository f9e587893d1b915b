// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// How far the retirement of a version is follows from what the
// CustomResourceDefinition says of it. What that cannot tell is when it was first
// seen so; status.retirement remembers it, whoever did it. So a manager that died
// between a write and its report has lost a moment of the soak, and nothing else.

// defaultAfter is the default of spec.retirement[].after.
const defaultAfter = 168 * time.Hour

// record is what is remembered of a version's retirement; nil where it was never
// seen, or is not to be retired.
func (s *state) record(version string) *v1alpha1.RetirementStatus {
	for i := range s.plan.Status.Retirement {
		if s.plan.Status.Retirement[i].Version == version {
			return &s.plan.Status.Retirement[i]
		}
	}
	return nil
}

// retirement is what the policy wants of a version; nil where it says nothing.
func (s *state) retirement(version string) *v1alpha1.Retirement {
	for i := range s.Policy.Spec.Retirement {
		if string(s.Policy.Spec.Retirement[i].Version) == version {
			return &s.Policy.Spec.Retirement[i]
		}
	}
	return nil
}

// reaches reports whether an action includes another one.
func reaches(action, step v1alpha1.RetirementAction) bool {
	order := []v1alpha1.RetirementAction{
		v1alpha1.RetirementReport, v1alpha1.RetirementDeprecate, v1alpha1.RetirementUnserve, v1alpha1.RetirementRemove,
	}
	return slices.Index(order, action) >= slices.Index(order, step)
}

func afterOf(entry *v1alpha1.Retirement) time.Duration {
	if entry == nil || entry.After == nil {
		return defaultAfter
	}
	return entry.After.Duration
}

// soak is how long a version is unserved before anything else: an API server that
// has not followed may serve it meanwhile.
func (s *state) soak(version string) time.Duration {
	return max(afterOf(s.retirement(version)), s.Settings.Settle)
}

// noteRetirement brings what is remembered up to date.
func (s *state) noteRetirement() {
	s.plan.Status.Retirement = slices.DeleteFunc(s.plan.Status.Retirement, func(record v1alpha1.RetirementStatus) bool {
		return s.CRD == nil || record.CRDUID != s.CRD.UID || s.retirement(record.Version) == nil
	})
	if s.CRD == nil {
		return
	}
	for i := range s.Policy.Spec.Retirement {
		entry := &s.Policy.Spec.Retirement[i]
		name := string(entry.Version)
		version, _ := crds.Version(s.CRD, name)
		if s.record(name) == nil && version != nil {
			s.plan.Status.Retirement = append(s.plan.Status.Retirement, s.newRecord(version))
		}
		if record := s.record(name); record != nil {
			s.note(entry, record, version)
			s.countRequests(record)
		}
	}
}

// newRecord begins to remember. A version that is not served at that time was not
// taken from its clients by this policy, whoever wrote spec.versions last.
func (s *state) newRecord(version *apiextensionsv1.CustomResourceDefinitionVersion) v1alpha1.RetirementStatus {
	record := v1alpha1.RetirementStatus{Version: version.Name, CRDUID: s.CRD.UID}
	if !version.Served {
		record.UnservedTime = s.second()
	}
	return record
}

// note remembers when a version was first seen as it is, and what of that is over.
// What this policy wanted, and is over, somebody took back.
func (s *state) note(entry *v1alpha1.Retirement, record *v1alpha1.RetirementStatus, version *apiextensionsv1.CustomResourceDefinitionVersion) {
	if version == nil {
		if record.RemovedTime == nil {
			record.RemovedTime = s.second()
		}
		return
	}
	if record.RemovedTime != nil {
		*record = v1alpha1.RetirementStatus{Version: record.Version, CRDUID: record.CRDUID, Requests: record.Requests, LastRequested: record.LastRequested}
		s.tookBack(entry, v1alpha1.RetirementRemove, "added "+record.Version+" again")
	}
	switch {
	case version.Deprecated && record.DeprecatedTime == nil:
		s.gaveIn()
		record.DeprecatedTime = s.second()
	case !version.Deprecated && record.DeprecatedTime != nil:
		record.DeprecatedTime = nil
		s.tookBack(entry, v1alpha1.RetirementDeprecate, "made "+record.Version+" a version that is not deprecated")
	}
	switch {
	case !version.Served && record.UnservedTime == nil:
		s.gaveIn()
		record.UnservedTime, record.UnservedHere = s.second(), crds.VersionsAreBy(s.CRD, ManagedBy)
	case version.Served && record.UnservedTime != nil:
		record.UnservedTime, record.UnservedHere, record.ClearedTime = nil, false, nil
		if version.Deprecated {
			record.DeprecatedTime = s.second() // it may be asked for once more, and is waited for
		}
		s.tookBack(entry, v1alpha1.RetirementUnserve, "served "+record.Version+" again")
	}
}

func (s *state) tookBack(entry *v1alpha1.Retirement, step v1alpha1.RetirementAction, what string) {
	if reaches(entry.Action, step) {
		s.takenBack = append(s.takenBack, what)
	}
}
