// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Objects of any kind may name a version: owners, webhooks, configuration of other tools. If the
// policy asks for it, the operator searches for them right before it stops serving the version, and
// again right before its removal. The first search matters most: once a version is not served,
// garbage collection takes each object that is created with an owner at that version for one without
// an owner, and deletes it (facts in decision 0064).
//
// One search is for all versions of the policy for which it is due, and a result is kept in memory
// only, so that every manager searches itself.

// searchLifetime is how long the result of a search counts, and the time between two searches while
// dependents block a version.
const searchLifetime = 10 * time.Minute

// notSearched is the message before the first search.
const notSearched = "the operator searches for objects that name it before it stops serving it, and before it removes it"

// search has the dependents of a version searched for. It returns no outcome once a recent search
// has found none, or if the policy does not ask for it.
func (r *Retirement) search(entry *v1alpha1.Retirement) gate.Outcome {
	name := string(entry.Version)
	if entry.Dependents != v1alpha1.DependentsCheck {
		return gate.Outcome{}
	}
	searches := r.Settings.DependentsAccount != "" && r.searchAgain()
	blocks := r.named(name)
	switch {
	case len(blocks) == 0 && !searches:
		return gate.Outcome{}
	case len(blocks) == 0 || blocks[0].Reason == v1alpha1.BlockedDependentsNotSearched && r.Settings.DependentsAccount != "":
		return gate.Pending(v1alpha1.ReasonRetiring, "searching for objects that name "+name)
	}
	reason := v1alpha1.ReasonCheckFailed
	switch blocks[0].Reason {
	case v1alpha1.BlockedDependentsNotSearched:
		reason = v1alpha1.ReasonRightsNotGranted
	case v1alpha1.BlockedDependents:
		reason = v1alpha1.ReasonBlocked
	}
	stays := name + " stays: "
	if r.nextStep(name) == v1alpha1.RetirementUnserve {
		stays = name + " stays served: "
	}
	return gate.Pending(reason, stays+blocks[0].Message)
}

// searchAgain starts a search if there is none, or if the last one is too old or failed, and reports
// whether it did. It lets a cleaning of managedFields finish, which may take longer than a result counts.
func (r *Retirement) searchAgain() bool {
	check, subject := r.Searched, r.searchSubject()
	due := r.work.DueCheck(check, subject, r.Now) ||
		check.ProvenOf(subject) && !r.Cleared.InProgress() && r.work.Due(check.Ended.Add(searchLifetime).Sub(r.Now))
	searches := slices.ContainsFunc(r.work.Steps, func(s step.Step) bool { _, is := s.(step.FindDependents); return is })
	if due && !searches {
		r.work.Do(step.FindDependents{Subject: subject, CRD: r.CRD.Name, Versions: r.toSearch(),
			User: names.Searcher(r.Settings.DependentsAccount, r.Settings.Namespace)})
	}
	return due
}

// toSearch are the versions for whose next step only a search may be missing.
func (r *Retirement) toSearch() (versions []string) {
	for i := range r.Policy.Spec.Retirement {
		entry := &r.Policy.Spec.Retirement[i]
		if entry.Dependents == v1alpha1.DependentsCheck && (r.unserves(entry) || r.removes(entry)) {
			versions = append(versions, string(entry.Version))
		}
	}
	slices.Sort(versions)
	return versions
}

// unserves reports that a version was deprecated, and not requested, for long enough.
func (r *Retirement) unserves(entry *v1alpha1.Retirement) bool {
	name := string(entry.Version)
	record := r.record(name)
	return reaches(entry.Action, v1alpha1.RetirementUnserve) && record != nil && record.DeprecatedTime != nil && record.UnservedTime == nil &&
		r.Left(record.DeprecatedTime, After(entry)) <= 0 && !r.lately(name)
}

// removes reports that no managedFields name a version that is not served.
func (r *Retirement) removes(entry *v1alpha1.Retirement) bool {
	record := r.record(string(entry.Version))
	return reaches(entry.Action, v1alpha1.RetirementRemove) && record != nil && record.CleanedTime != nil && record.RemovedTime == nil
}

// searchSubject includes the generation of the policy, so that its author can have a search at once,
// and for which step the search is.
func (r *Retirement) searchSubject() string {
	parts := []string{string(r.CRD.UID), strconv.FormatInt(r.Policy.Generation, 10)}
	for _, name := range r.toSearch() {
		parts = append(parts, name, string(r.nextStep(name)))
	}
	return names.Hash(parts...)
}

// nextStep is the step of a version that a search comes before.
func (r *Retirement) nextStep(name string) v1alpha1.RetirementAction {
	if crds.Serves(r.CRD, name) {
		return v1alpha1.RetirementUnserve
	}
	return v1alpha1.RetirementRemove
}

// named blocks a version that other objects name, or for which that is unknown, if the policy asks
// for it.
func (r *Retirement) named(name string) []v1alpha1.VersionBlock {
	entry := r.retirement(name)
	if entry == nil || entry.Dependents != v1alpha1.DependentsCheck {
		return nil
	}
	blocked := func(reason v1alpha1.VersionBlockReason, message string) []v1alpha1.VersionBlock {
		return []v1alpha1.VersionBlock{{Reason: reason, Message: message}}
	}
	check, found, next := r.Searched, observed.Dependents{}, r.nextStep(name)
	if check != nil {
		found = check.Dependents[name]
	}
	switch {
	case r.Settings.DependentsAccount == "":
		return blocked(v1alpha1.BlockedDependentsNotSearched, "the operator has no account to search for objects that name it: install config/components/dependents; or "+r.orIgnore(name))
	case !reaches(entry.Action, next):
		return blocked(v1alpha1.BlockedDependentsNotSearched, fmt.Sprintf("%s: set its action in spec.retirement to %s, or run: %s", notSearched, next, r.dependentsCommand(name)))
	case check == nil || check.Running || check.Subject != r.searchSubject():
		return r.namedBefore(name)
	case found.Count > 0:
		return blocked(v1alpha1.BlockedDependents, r.whatNames(name, found, check.Reason == ""))
	case check.Reason != "":
		return blocked(v1alpha1.BlockedDependentsUnknown, "it is unknown whether other objects name it: "+gate.Cut(check.Message)+"; "+r.orIgnore(name))
	case !slices.Contains(r.toSearch(), name):
		return blocked(v1alpha1.BlockedDependentsNotSearched, notSearched)
	}
	return nil
}

// searched are the reasons that a search has.
var searched = []v1alpha1.VersionBlockReason{v1alpha1.BlockedDependents, v1alpha1.BlockedDependentsUnknown}

// namedBefore is the result of the previous search, which remains in the status during the next one.
func (r *Retirement) namedBefore(name string) []v1alpha1.VersionBlock {
	for _, version := range r.Policy.Status.Versions {
		for _, block := range version.BlockedBy {
			if version.Name == name && slices.Contains(searched, block.Reason) {
				return []v1alpha1.VersionBlock{block}
			}
		}
	}
	return []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedDependentsNotSearched, Message: notSearched}}
}

// whatNames names the first dependents. If the search was not complete, there may be more.
func (r *Retirement) whatNames(name string, found observed.Dependents, complete bool) string {
	count, others := fmt.Sprint(found.Count), ""
	if !complete {
		count = "at least " + count
	}
	if more := found.Count - len(found.Names); more > 0 {
		others = fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("other objects name it (%s): %s%s: correct or delete them; %s",
		count, strings.Join(found.Names, ", "), others, r.orIgnore(name))
}

// orIgnore says how to see all dependents, and how to remove the version in spite of them.
func (r *Retirement) orIgnore(name string) string {
	return fmt.Sprintf("list them with: %s; or accept them with dependents: Ignore in spec.retirement", r.dependentsCommand(name))
}

func (r *Retirement) dependentsCommand(name string) string {
	return fmt.Sprintf("kubectl conversion dependents %s --version %s", r.CRD.Name, name)
}
