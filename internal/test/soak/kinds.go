// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// kind is a kind of steps.
type kind struct {
	name string
	// weight is the relative frequency among the possible kinds.
	weight int
	// details returns the variants of the step that are possible now, if any; nil for one without a
	// detail. The subject is nil for kinds that affect the whole cluster.
	details func(*model, *Subject) []string
	// apply applies the step to the model, and do performs it.
	apply func(*model, *Subject, Step)
	do    func(*player, context.Context, Step) error

	// cluster is set for kinds that affect the whole cluster instead of one subject, policy for those
	// that change the policy of a subject.
	cluster, policy bool
	// timed is set for kinds that take some seconds.
	timed bool
	// whenIdle is set for actions that are allowed only while nothing changes, for the documented
	// reason. waits is set for those after which the next step must wait until nothing changes.
	whenIdle, waits bool
	// noWrites is set for kinds during which no client may write.
	noWrites bool
	// gentle is set for kinds that leave at least one converter pod of each policy: if nothing else
	// changes, no conversion fails, not even until nothing changes any more.
	gentle bool
}

// kinds has every kind: actions of CRD authors and installers, of policy users, and failures. A
// suspended or abandoned policy writes no CRD and stores no ruleset, so that its fleet gets no step
// that needs that.
var kinds = []kind{
	{name: "write", weight: 6, cluster: true},
	{name: "begin", weight: 60, details: where(func(s *Subject) bool { return !s.Exists }, constant(places("in")...)), apply: begin,
		do: (*player).begin, waits: true, noWrites: true},
	// A version that is added before the converter is active is served unconverted:
	// api/docs/lifecycle.md.
	{name: "add version", weight: 12, details: where((*Subject).active, func(s *Subject) []string { return s.unretired(without(versions, s.Versions...)) }),
		apply: func(_ *model, s *Subject, is Step) {
			s.Versions, s.Served, s.Unsettled = with(s.Versions, is.Detail), with(s.Served, is.Detail), true
		}, do: (*player).applyDefinition, whenIdle: true},
	{name: "store at", weight: 10, details: where(func(s *Subject) bool { return s.Policy != nil && s.Policy.StorageVersion == "" }, (*Subject).storages),
		apply: func(_ *model, s *Subject, is Step) { s.Storage, s.Behind = is.Detail, true }, do: (*player).applyDefinition},
	{name: "serve", weight: 6, details: where(hasPolicy, func(s *Subject) []string { return s.unretired(without(s.Versions, s.Served...)) }),
		apply: func(_ *model, s *Subject, is Step) { s.Served = with(s.Served, is.Detail) }, do: (*player).applyDefinition},
	{name: "unserve", weight: 3, details: where(hasPolicy, func(s *Subject) []string { return s.unretired(without(s.Served, s.Storage)) }),
		apply: func(_ *model, s *Subject, is Step) { s.Served = without(s.Served, is.Detail) }, do: (*player).applyDefinition},
	// The API server refuses to remove a version in status.storedVersions.
	{name: "remove version", weight: 3, details: where((*Subject).migrates, func(s *Subject) []string { return s.unretired(without(s.Versions, s.Storage, hub)) }),
		apply: func(_ *model, s *Subject, is Step) {
			s.Versions, s.Served, s.Deprecated = without(s.Versions, is.Detail), without(s.Served, is.Detail), without(s.Deprecated, is.Detail)
		}, do: (*player).applyDefinition, whenIdle: true},
	{name: "overwrite conversion", weight: 5, details: where(func(s *Subject) bool { return s.active() && s.Overwrites < mostOverwrites },
		constant(strategyNone, foreignAuthority, foreignService)),
		apply: func(_ *model, s *Subject, _ Step) { s.Overwrites++ }, do: (*player).overwriteConversion, whenIdle: true, waits: true, noWrites: true},
	{name: "prune storedVersions", weight: 14, details: where(func(s *Subject) bool { return s.Exists && s.Behind }, once), do: (*player).pruneStoredVersions},
	{name: "end", weight: 1, details: where(func(s *Subject) bool { return s.Policy != nil && len(s.Versions) == len(versions) }, once),
		apply: func(_ *model, s *Subject, _ Step) { *s = Subject{Name: s.Name} }, do: (*player).end, waits: true, noWrites: true},

	{name: "move", weight: 8, policy: true, details: where((*Subject).active, func(s *Subject) []string {
		return slices.DeleteFunc(places("to"), func(place string) bool { return fleetAt(place) == s.Fleet })
	}), apply: func(_ *model, s *Subject, is Step) {
		s.move(fleetAt(is.Detail))
		s.Unsettled = true
	}, do: (*player).applyPolicy, gentle: true},
	{name: "change policy", weight: 5, policy: true, details: where(hasPolicy, changesOf),
		apply: func(_ *model, s *Subject, is Step) { changes[is.Detail](s.Policy) }, do: (*player).applyPolicy, gentle: true},
	{name: "trigger migration", weight: 3, policy: true, details: where(hasPolicy, once),
		apply: func(_ *model, s *Subject, is Step) { s.Policy.Migration.Trigger = is.Text }, do: (*player).applyPolicy},
	{name: "suspend migrations", weight: 2, policy: true, details: where(func(s *Subject) bool { return s.Policy != nil && !s.Policy.Migration.Suspend }, once),
		apply: func(_ *model, s *Subject, _ Step) { s.Policy.Migration.Suspend = true }, do: (*player).applyPolicy},
	{name: "resume migrations", weight: 8, policy: true, details: where(func(s *Subject) bool { return s.Policy != nil && s.Policy.Migration.Suspend }, once),
		apply: func(_ *model, s *Subject, _ Step) { s.Policy.Migration.Suspend = false }, do: (*player).applyPolicy},
	{name: "suspend policy", weight: 3, policy: true, details: where(func(s *Subject) bool { return s.active() && !s.Unsettled }, once),
		apply: func(_ *model, s *Subject, _ Step) { s.Policy.Suspend = true }, do: (*player).applyPolicy},
	{name: "resume policy", weight: 10, policy: true, details: where(func(s *Subject) bool { return s.Policy != nil && s.Policy.Suspend }, once),
		apply: func(_ *model, s *Subject, _ Step) { s.Policy.Suspend = false }, do: (*player).applyPolicy},
	{name: "promote", weight: 6, policy: true, details: where((*Subject).active, (*Subject).storages),
		apply: func(_ *model, s *Subject, is Step) {
			s.Policy.StorageVersion = v1alpha1.VersionName(is.Detail)
			s.Storage, s.Behind, s.Unsettled = is.Detail, true, true
		}, do: (*player).applyPolicy},
	// The promoted version is the storage version by now, and remains so.
	{name: "no longer promote", weight: 6, policy: true, details: where(func(s *Subject) bool { return s.active() && !s.Unsettled && s.Policy.StorageVersion != "" }, once),
		apply: func(_ *model, s *Subject, _ Step) { s.Policy.StorageVersion = "" }, do: (*player).applyPolicy},
	// The result is known only after waiting. While migrations are suspended, nothing can be retired,
	// because that needs evidence.
	{name: retirement, weight: 8, policy: true, details: where((*Subject).migrates, retirable), apply: func(_ *model, s *Subject, is Step) {
		version, action, accepted := readRetirement(is.Detail)
		if action == v1alpha1.RetirementRemove {
			s.Policy.Migration.Trigger = is.Text
		}
		s.retire(version, action, accepted)
	}, do: (*player).retireVersion, waits: true},
	{name: "no longer retire", weight: 3, policy: true, details: where(hasPolicy, reported),
		apply: func(_ *model, s *Subject, is Step) { s.forgetRetirement(is.Detail) }, do: (*player).applyPolicy},
	// The effects of an abandoned policy on the CRD remain.
	{name: "abandon policy", weight: 2, policy: true, details: where(hasPolicy, once),
		apply: func(_ *model, s *Subject, _ Step) { s.Policy, s.Blocked = nil, nil }, do: (*player).abandonPolicy, whenIdle: true, waits: true},
	{name: "adopt", weight: 15, policy: true, details: where(func(s *Subject) bool { return s.Exists && s.Policy == nil }, once),
		apply: func(_ *model, s *Subject, _ Step) {
			s.adopt()
			s.Unsettled = true
		}, do: (*player).applyPolicy},

	{name: "scale fleet", weight: 6, cluster: true, details: fleetSizes, apply: func(m *model, _ *Subject, is Step) {
		name, replicas := readSize(is.Detail)
		m.fleet(name).Replicas = replicas
	}, do: (*player).applyFleets, gentle: true},
	{name: "delete pods of fleet", weight: 6, cluster: true, details: podsOfFleets, do: (*player).deleteFleetPods, gentle: true},
	// Someone edits the ConfigMaps. A pod that starts before the operator reverts that lacks rules.
	{name: "edit rulesets of fleet", weight: 8, cluster: true, details: func(m *model, _ *Subject) []string {
		return eachOf(m.usedByActive(), deleteRulesets, damageRuleset)
	}, apply: unsettle, do: (*player).editRulesets, whenIdle: true, waits: true, gentle: true},

	{name: "rotate authority", weight: 10, cluster: true, details: convertingPlaces, apply: rotate, do: (*player).rotateAuthority, waits: true, gentle: true},
	{name: "delete child", weight: 10, cluster: true, details: func(m *model, _ *Subject) []string {
		return eachOf(convertingPlaces(m, nil), childNames...)
	}, apply: unsettle, do: (*player).deleteChild},
	{name: "age certificate", weight: 6, cluster: true, details: convertingPlaces, do: (*player).ageCertificate, whenIdle: true},

	{name: "kill", weight: 22, cluster: true, details: func(*model, *Subject) []string { return sortedKeys(targets) }, do: (*player).killProcesses},
	{name: "stop", weight: 8, cluster: true, timed: true, details: func(*model, *Subject) []string { return sortedKeys(targets) }, do: (*player).stopProcesses},
	{name: "fill disk", weight: 4, cluster: true, timed: true, do: (*player).fillDisk},
}

func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// where returns the details of a kind that is possible only for some subjects.
func where(possible func(*Subject) bool, details func(*Subject) []string) func(*model, *Subject) []string {
	return func(_ *model, s *Subject) []string {
		if !possible(s) {
			return nil
		}
		return details(s)
	}
}

func hasPolicy(s *Subject) bool { return s.Policy != nil }

// constant returns the details of a kind that always has the same variants; once is a kind with one variant.
func constant(details ...string) func(*Subject) []string {
	return func(*Subject) []string { return details }
}

var once = constant("")

const (
	// mostOverwrites is one less than the number of overwrites that the operator reverts.
	mostOverwrites = 4

	// Overwrites of spec.conversion by another client.
	strategyNone     = "with strategy None"
	foreignAuthority = "with another caBundle"
	foreignService   = "with another Service"

	// Edits of the ConfigMaps of a fleet.
	deleteRulesets = "deleting all"
	damageRuleset  = "damaging one"

	// ownPods is the place of a policy that uses no fleet.
	ownPods = "pods of its own"
)

type spec = v1alpha1.ConversionPolicySpec

var (
	// childNames are the objects of a fleet, or of a policy with pods of its own, that a step can delete.
	childNames = []string{"Deployment", "Service", "serving certificate", "authority"}
	// changes are those of a policy's spec by a user. Those with pods of its own need them.
	changes = map[string]func(*spec){
		"so that migrations verify everything":           func(p *spec) { p.Migration.Verify = v1alpha1.MigrationVerifyFull },
		"so that migrations verify nothing":              func(p *spec) { p.Migration.Verify = v1alpha1.MigrationVerifyNone },
		"so that migrations write slowly":                func(p *spec) { p.Migration.MaxWritesPerSecond = new(int32(10)) },
		"so that migrations write as fast as they can":   func(p *spec) { p.Migration.MaxWritesPerSecond = nil },
		"so that values are dropped that do not fit":     func(p *spec) { p.Converter.Declarative.Overflow = v1alpha1.OverflowDrop },
		"so that objects are refused that do not fit":    func(p *spec) { p.Converter.Declarative.Overflow = v1alpha1.OverflowFail },
		"so that it has one pod of its own":              func(p *spec) { p.Workload.Replicas = new(int32(1)) },
		"so that it has three pods of its own":           func(p *spec) { p.Workload.Replicas = new(int32(3)) },
		"so that certificates of its own last an hour":   func(p *spec) { p.Certificates.SelfManaged.Duration = &metav1.Duration{Duration: time.Hour} },
		"so that certificates of its own last their day": func(p *spec) { p.Certificates.SelfManaged.Duration = &metav1.Duration{Duration: 2160 * time.Hour} },
	}
)

func changesOf(s *Subject) []string {
	return slices.DeleteFunc(sortedKeys(changes), func(name string) bool { return s.Fleet != "" && strings.Contains(name, "own") })
}

// places returns the places of a policy, each after a word.
func places(word string) []string {
	return []string{word + " " + ownPods, word + " fleet " + fleetNames[0], word + " fleet " + fleetNames[1]}
}

// fleetAt returns the fleet of a place; empty for pods of its own.
func fleetAt(place string) string {
	if strings.HasSuffix(place, ownPods) {
		return ""
	}
	return lastWord(place)
}

func lastWord(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }

func begin(_ *model, s *Subject, is Step) {
	*s = Subject{Name: s.Name, Exists: true, Versions: []string{hub}, Served: []string{hub}, Storage: hub, Fleet: fleetAt(is.Detail)}
	s.adopt()
}

// storages returns the versions that may become the storage version.
func (s *Subject) storages() []string {
	return slices.DeleteFunc(without(s.Served, s.Storage), s.leaves)
}

// leaves reports whether the policy retires a version with an effect.
func (s *Subject) leaves(version string) bool {
	action := s.retirement(version).Action
	return action != "" && action != v1alpha1.RetirementReport
}

// unretired returns the versions that the policy does not retire: only those may the author of the
// CRD unserve or remove.
func (s *Subject) unretired(all []string) []string {
	return slices.DeleteFunc(all, func(version string) bool { return s.retirement(version).Action != "" })
}

// usedByActive returns the fleets whose users all follow.
func (m *model) usedByActive() []string {
	return slices.DeleteFunc(slices.Clone(fleetNames), func(name string) bool {
		users := m.users(name)
		return len(users) == 0 || slices.ContainsFunc(users, func(s *Subject) bool { return !s.active() })
	})
}

// convertingPlaces returns those fleets, and the policies with pods of their own.
func convertingPlaces(m *model, _ *Subject) []string {
	all := m.usedByActive()
	for _, s := range m.users("") {
		if s.active() {
			all = append(all, s.Name)
		}
	}
	return all
}

// unsettle affects the users of the place with which a detail ends.
func unsettle(m *model, _ *Subject, is Step) {
	place := lastWord(is.Detail)
	for _, s := range m.Subjects {
		if s.Exists && (s.Fleet == place || s.Fleet == "" && s.Name == place) {
			s.Unsettled = true
		}
	}
}

func rotate(m *model, _ *Subject, is Step) {
	unsettle(m, nil, is)
	if slices.Contains(fleetNames, is.Detail) {
		m.fleet(is.Detail).Rotation = is.Text
		return
	}
	s := m.subject(is.Detail)
	s.Policy.Certificates.SelfManaged.RotationTrigger, s.Overwrites = is.Text, 0
}

// fleetSizes returns other sizes of the fleets: "blue to 2".
func fleetSizes(m *model, _ *Subject) []string {
	var all []string
	for _, f := range m.Fleets {
		for replicas := int32(1); replicas <= replicasAtMost; replicas++ {
			if replicas != f.Replicas {
				all = append(all, fmt.Sprintf("%s to %d", f.Name, replicas))
			}
		}
	}
	return all
}

func readSize(detail string) (name string, size int32) {
	_, _ = fmt.Sscanf(detail, "%s to %d", &name, &size)
	return name, size
}

// podsOfFleets leave one pod.
func podsOfFleets(m *model, _ *Subject) []string {
	var all []string
	for _, f := range m.Fleets {
		if f.Replicas > 1 {
			all = append(all, "one of "+f.Name)
		}
		if f.Replicas > 2 {
			all = append(all, "all but one of "+f.Name)
		}
	}
	return all
}

// eachOf returns details with the name of a place last.
func eachOf(places []string, whats ...string) []string {
	var all []string
	for _, name := range places {
		for _, what := range whats {
			all = append(all, what+" of "+name)
		}
	}
	return all
}

func cutPlace(detail string) (what, place string) {
	i := strings.LastIndex(detail, " of ")
	return detail[:i], detail[i+len(" of "):]
}

// retirement is the kind of steps that change the retirement action of a version.
const retirement = "retire"

// acceptances are variants of acceptedLosses by version. A path includes all fields below it. The hub
// is never removed.
var acceptances = map[string][]string{
	joined: {"", ".spec.note"},
	nested: {"", ".spec.timeoutSeconds", ".spec"},
}

// retirable returns versions with their possible actions: "v1 to Remove accepting .spec.note". A version
// that is not served belongs to the author of the CRD, unless the policy unserved it.
func retirable(s *Subject) []string {
	var details []string
	for _, version := range without(s.Versions, s.Storage) {
		is := s.retirement(version)
		if is.Action == "" && !slices.Contains(s.Served, version) {
			continue
		}
		for _, action := range []v1alpha1.RetirementAction{v1alpha1.RetirementReport, v1alpha1.RetirementDeprecate, v1alpha1.RetirementUnserve} {
			if action != is.Action {
				details = append(details, version+" to "+string(action))
			}
		}
		for _, accepted := range acceptances[version] {
			if is.Action != v1alpha1.RetirementRemove || accepted != strings.Join(is.AcceptedLosses, " ") {
				details = append(details, strings.TrimSuffix(version+" to Remove accepting "+accepted, " accepting "))
			}
		}
	}
	return details
}

// readRetirement parses the detail of a step that retires a version.
func readRetirement(detail string) (version string, action v1alpha1.RetirementAction, accepted []string) {
	version, rest, _ := strings.Cut(detail, " to ")
	text, losses, _ := strings.Cut(rest, " accepting ")
	return version, v1alpha1.RetirementAction(text), strings.Fields(losses)
}

// reported returns the versions whose retirement can end without an effect to revert.
func reported(s *Subject) []string {
	var all []string
	for _, each := range s.Policy.Retirement {
		if version := string(each.Version); each.Action == v1alpha1.RetirementReport || !slices.Contains(s.Versions, version) {
			all = append(all, version)
		}
	}
	return all
}
