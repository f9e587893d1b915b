// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	humanize "k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// RolledBack is a gate: steps of a retirement that the policy no longer wants are reverted.
func (r *Retirement) RolledBack() gate.Decision { return r.work.Decide(r.rolledBack()) }

// rolledBack reverts what this policy did to a version and no longer wants. The gates before
// this one have proven that objects convert to that version.
func (r *Retirement) rolledBack() gate.Outcome {
	for _, entry := range r.Policy.Spec.Retirement {
		name := string(entry.Version)
		version, _ := crds.Version(r.CRD, name)
		record := r.record(name)
		switch {
		case version == nil || record == nil:
		case !version.Served && record.UnservedHere && !reaches(entry.Action, v1alpha1.RetirementUnserve):
			return r.edit("serving "+name+" again", r.change(name, "served", true))
		case version.Deprecated && r.warnsInOurWords(version.DeprecationWarning) && !reaches(entry.Action, v1alpha1.RetirementDeprecate):
			return r.edit("undoing the deprecation of "+name,
				r.change(name, "deprecated", false), r.change(name, "deprecationWarning", nil))
		}
	}
	return gate.Outcome{}
}

// Retired is the gate VersionsRetired: each version to retire is as far as it may be.
func (r *Retirement) Retired() gate.Decision { return r.work.Decide(r.retired()) }

// retired takes each version of spec.retirement one step further. A step is one write, and
// follows when the step before it has lasted long enough.
func (r *Retirement) retired() gate.Outcome {
	if len(r.Policy.Spec.Retirement) == 0 {
		return gate.Passed(v1alpha1.ReasonNotNeeded, "spec.retirement is empty; see status.versions for removable versions")
	}
	r.askForRequests()
	var last gate.Outcome
	var messages []string
	for i := range r.Policy.Spec.Retirement {
		o := r.retire(&r.Policy.Spec.Retirement[i])
		if o.Stop {
			return o
		}
		messages = append(messages, o.Message+r.doubts(&r.Policy.Spec.Retirement[i]))
		if last.Reason == "" || last.Status == metav1.ConditionTrue {
			last = o
		}
	}
	last.Message = strings.Join(messages, "; ")
	return last
}

// retire takes a version one step further, or says what the step waits for.
func (r *Retirement) retire(entry *v1alpha1.Retirement) gate.Outcome {
	name := string(entry.Version)
	version, _ := crds.Version(r.CRD, name)
	switch {
	case version == nil:
		return gate.Passed(v1alpha1.ReasonRetired, r.notThere(name))
	case entry.Action == v1alpha1.RetirementKeep:
		return gate.Passed(v1alpha1.ReasonRetired, r.answer(name))
	}
	if blocks := r.holdsObjects(name); len(blocks) > 0 {
		return gate.Pending(v1alpha1.ReasonBlocked, name+" stays: "+blocks[0].Message)
	}
	record := r.record(name)
	switch {
	case record.DeprecatedTime == nil:
		return r.edit("deprecating "+name,
			r.change(name, "deprecated", true), r.change(name, "deprecationWarning", r.warning(name)))
	case !reaches(entry.Action, v1alpha1.RetirementUnserve):
		return gate.Passed(v1alpha1.ReasonRetired, name+" is deprecated; "+r.answer(name))
	case record.UnservedTime == nil && reaches(entry.Action, v1alpha1.RetirementRemove) && len(r.strands(name)) > 0:
		// While the version is served, its preserved values can still be moved to fields.
		return gate.Pending(v1alpha1.ReasonBlocked, name+" stays: "+r.strands(name)[0].Message)
	case record.UnservedTime == nil:
		return r.unserve(entry, record)
	case record.CleanedTime == nil || reaches(entry.Action, v1alpha1.RetirementRemove):
		return r.remove(entry, record)
	}
	return gate.Passed(v1alpha1.ReasonRetired, name+" is not served; "+r.answer(name))
}

// notThere says that the version does not exist, and what to do if it never did.
func (r *Retirement) notThere(name string) string {
	says := "the CustomResourceDefinition has no " + name
	if r.record(name) == nil {
		says += ": if another version is meant, correct its name in spec.retirement"
	}
	return says
}

// edit changes spec.versions after the status has the evidence for the current
// CustomResourceDefinition. Evidence survives one change at a time: a second change before
// the status is written would invalidate it, and require another migration.
func (r *Retirement) edit(note string, changes ...step.VersionChange) gate.Outcome {
	kept := r.Policy.Status.MigrationEvidence
	if r.migration.Status.MigrationEvidence != nil && (kept == nil || r.Policy.Status.CRD.Generation != r.CRD.Generation) {
		return gate.Waiting(v1alpha1.ReasonRetiring, note)
	}
	return r.editVersions(v1alpha1.ReasonRetiring, note, changes...)
}

// answer says whether a version may be removed.
func (r *Retirement) answer(name string) string {
	blocks := r.keeps(name)
	if len(blocks) == 0 {
		return name + " may be removed"
	}
	return fmt.Sprintf("%s may not be removed: %s", name, blocks[0].Message)
}

// unserve stops serving a version that was deprecated, and not requested, for long enough. Right before
// that, the operator checks on request that nothing else names it.
func (r *Retirement) unserve(entry *v1alpha1.Retirement, record *v1alpha1.RetirementStatus) gate.Outcome {
	name, after := record.Version, After(entry)
	if r.onlyServed(name) {
		return gate.Pending(v1alpha1.ReasonBlocked, fmt.Sprintf("%s cannot be unserved, because it is the only served version: serve %s", name, crds.StorageVersion(r.CRD)))
	}
	if blocks := r.losesFeatures(name); len(blocks) > 0 {
		return gate.Pending(v1alpha1.ReasonBlocked, name+" stays served: "+blocks[0].Message)
	}
	if r.lately(name) {
		r.work.Recheck(r.Left(record.LastRequested, after+requestsInterval))
		return gate.Pending(v1alpha1.ReasonSoaking, fmt.Sprintf("a client requested %s recently; the operator stops serving it after %s without requests: move clients to %s",
			name, humanize.HumanDuration(after), crds.StorageVersion(r.CRD)))
	}
	left, looked := r.Left(record.DeprecatedTime, after), after == 0 || r.looked(record.DeprecatedTime.Add(after))
	switch {
	case left > 0:
		r.work.Recheck(left)
	case looked && after > 0 && r.unknown() != "":
		return gate.Pending(v1alpha1.ReasonBlocked, fmt.Sprintf("%s is deprecated, and stays served, because clients may request it unseen: %s; stop serving it yourself, or set after: 0s",
			name, gate.Cut(r.unknown())))
	default:
		if found := r.search(entry); found.Reason != "" {
			return found
		}
		if looked {
			return r.edit("setting served: false for "+name, r.change(name, "served", false))
		}
		r.readRequests()
	}
	return gate.Pending(v1alpha1.ReasonSoaking, fmt.Sprintf("%s is deprecated; the operator stops serving it after %s without requests%s", name, humanize.HumanDuration(after), r.unknownRequests()))
}

// unknownRequests says that requests are unknown, so that the version will stay.
func (r *Retirement) unknownRequests() string {
	if why := r.unknown(); why != "" {
		return "; requests are unknown: " + gate.Cut(why)
	}
	return ""
}

// remove removes a version from the CustomResourceDefinition after it was unserved for long
// enough. Right before that, the operator checks that no managedFields name it, and on request that
// nothing else does. The check of managedFields is repeated after that: a search may take days to
// find nothing.
func (r *Retirement) remove(entry *v1alpha1.Retirement, record *v1alpha1.RetirementStatus) gate.Outcome {
	name, soak := record.Version, r.soak(record.Version)
	if !r.work.Due(r.Left(record.UnservedTime, soak)) {
		return gate.Pending(v1alpha1.ReasonSoaking, fmt.Sprintf("%s is unserved; the next step follows after %s", name, humanize.HumanDuration(soak)))
	}
	if reaches(entry.Action, v1alpha1.RetirementRemove) && r.isHub(name) {
		return gate.Pending(v1alpha1.ReasonBlocked, name+" cannot be removed, because it is the hub of spec.converter.declarative: write the rules with another hub")
	}
	if blocks := r.refused(name); len(blocks) > 0 && reaches(entry.Action, v1alpha1.RetirementRemove) {
		return gate.Pending(v1alpha1.ReasonBlocked, name+" stays: "+blocks[0].Message)
	}
	if record.CleanedTime == nil {
		if cleared := r.clear(record); cleared.Reason != "" {
			return cleared
		}
	}
	if !reaches(entry.Action, v1alpha1.RetirementRemove) {
		return gate.Passed(v1alpha1.ReasonRetired, name+" is not served; "+r.answer(name))
	}
	if len(r.strands(name)) == 0 {
		if found := r.search(entry); found.Reason != "" {
			return found
		}
	}
	if cleared := r.clear(record); cleared.Reason != "" {
		return cleared
	}
	if blocks := r.strands(name); len(blocks) > 0 {
		return gate.Pending(v1alpha1.ReasonBlocked, name+" stays: "+blocks[0].Message)
	}
	return r.edit("removing "+name+r.discarded(), r.change(name, "", nil))
}

// discarded says from how many objects this manager has deleted accepted losses. It continues a message.
func (r *Retirement) discarded() string {
	if r.Cleared == nil || r.Cleared.Discarded == 0 {
		return ""
	}
	return fmt.Sprintf("; accepted losses were deleted from %d objects", r.Cleared.Discarded)
}

// warning is the warning that API servers send to clients of a deprecated version.
func (r *Retirement) warning(name string) string {
	crd := r.CRD
	return fmt.Sprintf("%s/%s %s is deprecated; use %s/%s %s%s", crd.Spec.Group, name, crd.Spec.Names.Kind,
		crd.Spec.Group, crds.StorageVersion(crd), crd.Spec.Names.Kind, r.ourWords())
}

// ourWords is the end of a warning, by which the policy recognizes its own.
func (r *Retirement) ourWords() string { return fmt.Sprintf(" (ConversionPolicy %s)", r.Policy.Name) }

func (r *Retirement) warnsInOurWords(warning *string) bool {
	return warning != nil && strings.HasSuffix(*warning, r.ourWords())
}
