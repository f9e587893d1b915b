// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	humanize "k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// pending says that something is still to come, and holds up nobody: a policy whose
// version soaks for a week is as ready as it can be.
func pending(reason, message string) outcome {
	return outcome{status: metav1.ConditionFalse, reason: reason, message: message}
}

// retirementTakenBack: what this policy did to a version beyond what it wants now
// is undone. The gates before this one have proven that objects convert to it.
func retirementTakenBack(s *state) outcome {
	for _, entry := range s.Policy.Spec.Retirement {
		name := string(entry.Version)
		version, _ := crds.Version(s.CRD, name)
		record := s.record(name)
		switch {
		case version == nil || record == nil:
		case !version.Served && record.UnservedHere && !reaches(entry.Action, v1alpha1.RetirementUnserve):
			return s.edit("serving "+name+" again", s.change(name, "served", true))
		case version.Deprecated && s.warnsInOurWords(version.DeprecationWarning) && !reaches(entry.Action, v1alpha1.RetirementDeprecate):
			return s.edit("taking the deprecation of "+name+" back",
				s.change(name, "deprecated", false), s.change(name, "deprecationWarning", nil))
		}
	}
	return outcome{}
}

// versionsRetired: each version of spec.retirement is where the policy wants it.
// Each step is one write, and is taken when the one before it has lasted.
func versionsRetired(s *state) outcome {
	if len(s.Policy.Spec.Retirement) == 0 {
		return passed(v1alpha1.ReasonNothingToRetire, "spec.retirement is empty; status.versions says what may go")
	}
	s.askForRequests()
	var last outcome
	var said []string
	for i := range s.Policy.Spec.Retirement {
		o := s.retire(&s.Policy.Spec.Retirement[i])
		if o.stop {
			return o
		}
		said = append(said, o.message+s.doubts(&s.Policy.Spec.Retirement[i]))
		if last.reason == "" || last.status == metav1.ConditionTrue {
			last = o
		}
	}
	last.message = strings.Join(said, "; ")
	return last
}

// retire takes a version one step further, or says what that waits for.
func (s *state) retire(entry *v1alpha1.Retirement) outcome {
	name := string(entry.Version)
	version, _ := crds.Version(s.CRD, name)
	switch {
	case version == nil:
		return passed(v1alpha1.ReasonRetired, s.notThere(name))
	case entry.Action == v1alpha1.RetirementReport:
		return passed(v1alpha1.ReasonRetired, s.answer(name))
	}
	if blocks := s.holdsObjects(name); len(blocks) > 0 {
		return pending(v1alpha1.ReasonBlocked, name+" stays: "+blocks[0].Message)
	}
	record := s.record(name)
	switch {
	case record.DeprecatedTime == nil:
		return s.edit("deprecating "+name,
			s.change(name, "deprecated", true), s.change(name, "deprecationWarning", s.warning(name)))
	case !reaches(entry.Action, v1alpha1.RetirementUnserve):
		return passed(v1alpha1.ReasonRetired, name+" is deprecated; "+s.answer(name))
	case record.UnservedTime == nil && reaches(entry.Action, v1alpha1.RetirementRemove) && len(s.strands(name)) > 0:
		// While it is served, what objects hold of it can still be given a place.
		return pending(v1alpha1.ReasonBlocked, name+" stays: "+s.strands(name)[0].Message)
	case record.UnservedTime == nil:
		return s.unserve(entry, record)
	case record.ClearedTime == nil || reaches(entry.Action, v1alpha1.RetirementRemove):
		return s.remove(entry, record)
	}
	return passed(v1alpha1.ReasonRetired, name+" is not served; "+s.answer(name))
}

// notThere says that there is no such version, and what to do where there never was.
func (s *state) notThere(name string) string {
	says := "the CustomResourceDefinition has no " + name
	if s.record(name) == nil {
		says += ": if another version is meant, correct its name in spec.retirement"
	}
	return says
}

// edit writes spec.versions once the status has the evidence for the
// CustomResourceDefinition as it is. Evidence follows one change at a time: who
// makes the next one before the last is written down loses it, and migrates again.
func (s *state) edit(note string, changes ...VersionChange) outcome {
	kept := s.Policy.Status.Evidence
	if s.plan.Status.Evidence != nil && (kept == nil || kept.CRDGeneration != s.CRD.Generation) {
		return waiting(v1alpha1.ReasonRetiring, note)
	}
	return s.editVersions(v1alpha1.ReasonRetiring, note, changes...)
}

// answer is whether a version may be removed, in words.
func (s *state) answer(name string) string {
	blocks := s.keeps(name)
	if len(blocks) == 0 {
		return name + " may be removed"
	}
	return fmt.Sprintf("%s may not be removed: %s", name, blocks[0].Message)
}

// unserve stops serving a version that was deprecated, and not asked for, for long enough.
func (s *state) unserve(entry *v1alpha1.Retirement, record *v1alpha1.RetirementStatus) outcome {
	name, after := record.Version, afterOf(entry)
	if s.onlyServed(name) {
		return pending(v1alpha1.ReasonBlocked, fmt.Sprintf("%s stays: clients could use no other version: serve %s", name, crds.StorageVersion(s.CRD)))
	}
	if s.lately(name) {
		s.recheck(s.left(record.LastRequested, after+lookAtRequests))
		return pending(v1alpha1.ReasonRequested, fmt.Sprintf("%s is served until nobody has asked for it for %s", name, humanize.HumanDuration(after)))
	}
	left := s.left(record.DeprecatedTime, after)
	switch {
	case left > 0:
		s.recheck(left)
	case after > 0 && !s.looked(record.DeprecatedTime.Add(after)):
		s.readRequests()
	default:
		return s.edit("setting served: false for "+name, s.change(name, "served", false))
	}
	return pending(v1alpha1.ReasonSoaking, fmt.Sprintf("%s is deprecated, and served until nobody has asked for it for %s%s", name, humanize.HumanDuration(after), s.blindness()))
}

// blindness says that the time is all there is to go by.
func (s *state) blindness() string {
	if why := s.unreadable(); why != "" {
		return "; whether anybody asks is not known: " + cut(why)
	}
	return ""
}

// remove takes a version out of the CustomResourceDefinition, once it has not been
// served for long enough and no object names it. That is looked at right before.
func (s *state) remove(entry *v1alpha1.Retirement, record *v1alpha1.RetirementStatus) outcome {
	name, soak := record.Version, s.soak(record.Version)
	if left := s.left(record.UnservedTime, soak); left > 0 {
		s.recheck(left)
		return pending(v1alpha1.ReasonSoaking, fmt.Sprintf("%s is not served, and stays so for %s before anything else is done", name, humanize.HumanDuration(soak)))
	}
	if reaches(entry.Action, v1alpha1.RetirementRemove) && s.isHub(name) {
		return pending(v1alpha1.ReasonBlocked, name+" stays: it is the hub of spec.converter.declarative, by way of which the other versions convert: write the rules with another hub")
	}
	if cleared := s.clear(record); cleared.reason != "" {
		return cleared
	}
	if !reaches(entry.Action, v1alpha1.RetirementRemove) {
		return passed(v1alpha1.ReasonRetired, name+" is not served; "+s.answer(name))
	}
	if blocks := s.strands(name); len(blocks) > 0 {
		return pending(v1alpha1.ReasonBlocked, name+" stays: "+blocks[0].Message)
	}
	return s.edit("removing "+name, s.change(name, "", nil))
}

// warning is what an API server sends to whoever uses a deprecated version.
func (s *state) warning(name string) string {
	crd := s.CRD
	return fmt.Sprintf("%s/%s %s is deprecated; use %s/%s %s%s", crd.Spec.Group, name, crd.Spec.Names.Kind,
		crd.Spec.Group, crds.StorageVersion(crd), crd.Spec.Names.Kind, s.ourWords())
}

// ourWords end a warning of this policy's, by which it knows its own again.
func (s *state) ourWords() string { return fmt.Sprintf(" (ConversionPolicy %s)", s.Policy.Name) }

func (s *state) warnsInOurWords(warning *string) bool {
	return warning != nil && strings.HasSuffix(*warning, s.ourWords())
}
