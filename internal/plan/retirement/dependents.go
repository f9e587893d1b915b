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
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Objects of any kind may name a version: owners, webhooks, configuration of other tools. If the
// policy asks for it, the operator searches for them right before a removal. One search is for all
// versions of the policy that are about to be removed, and a result is kept in memory only, so that
// every manager searches itself before it removes a version.

// searchLifetime is how long the result of a search counts, and the time between two searches while
// dependents block a removal.
const searchLifetime = 10 * time.Minute

// notSearched is the message before the first search.
const notSearched = "the operator searches for objects that name it before it removes it"

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
		return gate.Pending(v1alpha1.ReasonSearchingDependents, "searching for objects that name "+name)
	}
	reason := v1alpha1.ReasonDependentsUnknown
	switch blocks[0].Reason {
	case v1alpha1.BlockedDependentsNotSearched:
		reason = v1alpha1.ReasonRightsNotGranted
	case v1alpha1.BlockedDependents:
		reason = v1alpha1.ReasonBlocked
	}
	return gate.Pending(reason, name+" stays: "+blocks[0].Message)
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

// toSearch are the versions for whose removal only a search may be missing.
func (r *Retirement) toSearch() (versions []string) {
	for i := range r.Policy.Spec.Retirement {
		entry := &r.Policy.Spec.Retirement[i]
		record := r.record(string(entry.Version))
		if entry.Dependents == v1alpha1.DependentsCheck && reaches(entry.Action, v1alpha1.RetirementRemove) &&
			record != nil && record.CleanedTime != nil && record.RemovedTime == nil {
			versions = append(versions, string(entry.Version))
		}
	}
	slices.Sort(versions)
	return versions
}

// searchSubject includes the generation of the policy, so that its author can have a search at once.
func (r *Retirement) searchSubject() string {
	return names.Hash(append([]string{string(r.CRD.UID), strconv.FormatInt(r.Policy.Generation, 10)}, r.toSearch()...)...)
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
	check, found := r.Searched, observed.Dependents{}
	if check != nil {
		found = check.Dependents[name]
	}
	switch {
	case r.Settings.DependentsAccount == "":
		return blocked(v1alpha1.BlockedDependentsNotSearched, "the operator has no account to search for objects that name it: install config/components/dependents; or "+r.orIgnore(name))
	case !reaches(entry.Action, v1alpha1.RetirementRemove):
		return blocked(v1alpha1.BlockedDependentsNotSearched, notSearched+": set its action in spec.retirement to Remove, or run: "+r.dependentsCommand(name))
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
