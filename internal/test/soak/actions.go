// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// action is what authors of CRDs, users of policies or other clients do, or a failure.
type action struct {
	name string
	// weight is the relative frequency.
	weight int
	// on returns the names of the possible targets: subjects, fleets, or the whole cluster.
	on func(*Sequence) []string
	// variants returns the possible variants, by default one. It gets the target, if that is a subject.
	variants func(*Subject) []string
	// change changes the expected state.
	change func(target, Step)
	// do performs the action. Without it, shell does, a script with the name of the CRD in $CRD, the instance label
	// of converter pods in $INSTANCE, the variant in $VARIANT and a unique word in $STEP; then the new state is applied.
	do    func(*player, context.Context, Step) error
	shell string

	// idle is set for actions that are allowed only while nothing changes, so that their result can be
	// predicted, and waits for those after which the next step must wait until nothing changes.
	idle, waits bool
	// gentle is set for actions that leave at least one converter pod of each policy: if nothing else
	// changes, no conversion fails, not even until nothing changes any more.
	gentle bool
	// breaks is set for the action after which objects of the subject are not converted for a while.
	breaks bool
	// real is set for actions that need a real cluster, and not only the planner's world.
	real bool
}

// target is what an action affects: a subject or a fleet.
type target struct {
	*Subject
	fleet *v1alpha1.ConverterFleetSpec
}

// actions has every action. A paused or orphaned policy writes no CRD and stores no ruleset, so that
// its fleet gets no action that needs that.
var actions = []action{
	// Authors of CRDs, and other clients that write them.
	{name: "begin", weight: 120, waits: true, on: subjects(func(s *Subject) bool { return s.CRD == nil }), variants: places,
		change: func(t target, s Step) { t.begin(fleetAt(s.Detail)) }},
	// A version that is added before the converter is active is served unconverted: api/docs/lifecycle.md.
	{name: "add version", weight: 30, idle: true, on: subjects((*Subject).active),
		variants: authored(func(is *crdVersion) bool { return is == nil }),
		change:   func(t target, s Step) { t.add(s.Detail) }},
	{name: "store at", weight: 24, on: subjects(func(s *Subject) bool { return s.Policy != nil && s.Policy.StorageVersion == "" }), variants: storages,
		change: func(t target, s Step) { t.store(s.Detail) }},
	{name: "serve", weight: 15, on: subjects((*Subject).hasPolicy),
		variants: authored(func(is *crdVersion) bool { return is != nil && !is.Served }),
		change:   func(t target, s Step) { t.version(s.Detail).Served = true }},
	{name: "unserve", weight: 8, on: subjects((*Subject).hasPolicy),
		variants: authored(func(is *crdVersion) bool { return is != nil && is.Served && !is.Storage }),
		change:   func(t target, s Step) { t.version(s.Detail).Served = false }},
	// The API server refuses to remove a version in status.storedVersions.
	{name: "remove version", weight: 8, idle: true, on: subjects((*Subject).migrates),
		variants: authored(func(is *crdVersion) bool { return is != nil && !is.Storage && is.Name != hub }),
		change:   func(t target, s Step) { t.remove(s.Detail) }},
	// An installer does not know the operator, which reverts that at most five times in ten minutes.
	{name: "overwrite conversion", weight: 3, idle: true, waits: true, breaks: true, on: subjects((*Subject).active),
		variants: constant(`{"strategy": "None", "webhook": null}`, `{"webhook": {"clientConfig": {"service": {"name": "another"}}}}`),
		shell:    `kubectl patch crd $CRD --type=merge -p "{\"spec\": {\"conversion\": $VARIANT}}"`},
	{name: "prune storedVersions", weight: 24, on: subjects(func(s *Subject) bool { return s.CRD != nil }), do: (*player).pruneStoredVersions},
	{name: "end", weight: 4, waits: true, real: true, on: subjects((*Subject).hasPolicy),
		change: func(t target, _ Step) { *t.Subject = Subject{Name: t.Name} }, shell: `kubectl delete --ignore-not-found crd/$CRD cvp/$CRD`},

	// Users of policies and fleets.
	{name: "move", weight: 20, gentle: true, on: subjects((*Subject).active), variants: places,
		change: func(t target, s Step) { t.move(fleetAt(s.Detail)) }},
	{name: "change policy", weight: 12, gentle: true, on: subjects((*Subject).hasPolicy), variants: changesOf,
		change: func(t target, s Step) { changes[s.Detail](t.Policy) }},
	{name: "trigger migration", weight: 8, on: subjects((*Subject).hasPolicy),
		change: func(t target, s Step) { t.Policy.Migration.Trigger = s.text() }},
	{name: "suspend migrations", weight: 5, on: subjects((*Subject).migrates),
		change: func(t target, _ Step) { t.Policy.Migration.Suspend = true }},
	{name: "resume migrations", weight: 20, on: subjects(func(s *Subject) bool { return s.Policy != nil && s.Policy.Migration.Suspend }),
		change: func(t target, _ Step) { t.Policy.Migration.Suspend = false }},
	{name: "pause policy", weight: 8, idle: true, on: subjects((*Subject).active),
		change: func(t target, _ Step) { t.Policy.Paused = true }},
	{name: "resume policy", weight: 25, on: subjects((*Subject).paused),
		change: func(t target, _ Step) { t.Policy.Paused = false }},
	{name: "promote", weight: 15, on: subjects((*Subject).active), variants: storages,
		change: func(t target, s Step) {
			t.Policy.StorageVersion = v1alpha1.VersionName(s.Detail)
			t.store(s.Detail)
		}},
	// The promoted version is the storage version by now, and remains so.
	{name: "no longer promote", weight: 15, idle: true, on: subjects(func(s *Subject) bool { return s.active() && s.Policy.StorageVersion != "" }),
		change: func(t target, _ Step) { t.Policy.StorageVersion = "" }},
	// The result is known only after waiting. While migrations are suspended, nothing can be retired,
	// because that needs evidence.
	{name: "retire", weight: 10, waits: true, on: subjects((*Subject).migrates),
		variants: retirements("Keep", "Deprecate", "Unserve"), change: retire},
	// The status reports what would be lost once a migration has counted it: api/docs/lifecycle.md.
	{name: "retire by removal", weight: 10, waits: true, real: true, on: subjects((*Subject).migrates),
		variants: retirements("Remove", "Remove"+accepting),
		shell: `kubectl patch cvp $CRD --type=merge -p '{"spec": {"migration": {"trigger": "'$STEP'"}}}'
			kubectl wait cvp $CRD --timeout=5m --for=jsonpath='{.status.migration.trigger}'=$STEP
			kubectl wait cvp $CRD --timeout=5m --for=jsonpath='{.status.migration.state}'=Succeeded`,
		change: func(t target, s Step) {
			t.Policy.Migration.Trigger = s.text()
			retire(t, s)
		}},
	{name: "no longer retire", weight: 8, on: subjects((*Subject).hasPolicy), variants: withoutEffect,
		change: func(t target, s Step) { t.forgetRetirement(s.Detail) }},
	// The effects of an orphaned policy on the CRD remain.
	{name: "orphan policy", weight: 5, idle: true, waits: true, real: true, on: subjects((*Subject).hasPolicy),
		change: func(t target, _ Step) { t.Policy = nil },
		shell: `kubectl get cvp $CRD --ignore-not-found -o name | xargs -r kubectl patch --type=merge -p '{"spec": {"deletionPolicy": "Orphan"}}'
			kubectl delete --ignore-not-found cvp $CRD`},
	{name: "adopt", weight: 40, on: subjects(func(s *Subject) bool { return s.CRD != nil && s.Policy == nil }),
		change: func(t target, _ Step) { t.adopt(t.Fleet) }},
	{name: "scale fleet", weight: 6, gentle: true, real: true, on: fleets, variants: constant("1", "2", "3", "4"),
		change: func(t target, s Step) {
			size, _ := strconv.ParseInt(s.Detail, 10, 32)
			t.fleet.Replicas = new(int32(size))
		}},
	{name: "rotate authority", weight: 10, gentle: true, waits: true, real: true, on: (*Sequence).converting,
		change: func(t target, s Step) { t.certificates().RotationTrigger = s.text() }},

	// Failures, and clients that write what only the operator should.
	{name: "delete pods of fleet", weight: 6, gentle: true, real: true, on: fleets,
		shell: inSystem + `get pods -l app.kubernetes.io/instance=$INSTANCE -o name | tail -n +2 | xargs -r ` + inSystem + `delete --ignore-not-found --wait=false`},
	// A pod that starts before the operator writes them again lacks rules.
	{name: "delete rulesets of fleet", weight: 8, idle: true, waits: true, gentle: true, real: true, on: (*Sequence).following,
		shell: inSystem + `delete configmaps -l app.kubernetes.io/instance=$INSTANCE`},
	{name: "delete child", weight: 10, real: true, on: (*Sequence).converting,
		variants: constant("deployment/", "service/", "secret/ -tls", "secret/ -ca"),
		shell:    `set -- $VARIANT; ` + inSystem + `delete --ignore-not-found --wait=false $1$INSTANCE${2-}`},
	{name: "age certificate", weight: 6, idle: true, real: true, on: (*Sequence).converting, do: (*player).ageCertificate},
	{name: "kill", weight: 22, real: true, on: cluster, variants: constant(processes...), do: (*player).kill},
	{name: "stop", weight: 8, real: true, on: cluster, variants: constant(processes...), do: (*player).stop},
	{name: "fill disk", weight: 4, real: true, on: cluster, do: (*player).fillDisk},
}

func actionNamed(name string) action {
	return actions[slices.IndexFunc(actions, func(a action) bool { return a.name == name })]
}

const (
	inSystem = "kubectl -n " + system + " "
	// ownPods is the place of a policy that uses no fleet.
	ownPods = "pods of its own"
	// accepting ends the retirement of a version whose values may be lost.
	accepting = ", accepting losses"
)

type spec = v1alpha1.ConversionPolicySpec

// changes are those of a policy's spec by a user. Only policies with pods of their own can have the last ones.
var changes = map[string]func(*spec){
	"migrations verify everything": func(p *spec) { p.Migration.Verify = v1alpha1.MigrationVerifyFull },
	"migrations verify nothing":    func(p *spec) { p.Migration.Verify = v1alpha1.MigrationVerifyNone },
	"migrations write slowly":      func(p *spec) { p.Migration.MaxWritesPerSecond = new(int32(10)) },
	"migrations write fast":        func(p *spec) { p.Migration.MaxWritesPerSecond = nil },
	"drop what does not fit":       func(p *spec) { p.Converter.Declarative.Overflow = v1alpha1.OverflowDrop },
	"refuse what does not fit":     func(p *spec) { p.Converter.Declarative.Overflow = v1alpha1.OverflowFail },
	"one of " + ownPods:            func(p *spec) { p.Workload.Dedicated.Replicas = new(int32(1)) },
	"three of " + ownPods:          func(p *spec) { p.Workload.Dedicated.Replicas = new(int32(3)) },
}

func changesOf(s *Subject) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(changes)), func(name string) bool { return s.Fleet != "" && strings.HasSuffix(name, ownPods) })
}

func constant(variants ...string) func(*Subject) []string {
	return func(*Subject) []string { return slices.Clone(variants) }
}

var places = constant(append([]string{ownPods}, fleetNames...)...)

// fleetAt returns the fleet of a place; empty for pods of its own.
func fleetAt(place string) string { return strings.TrimSuffix(place, ownPods) }

// which returns the versions for which possible is true. It gets nil for a version that the CRD does not have,
// and action is how the policy retires the version, if it does.
func which(possible func(is *crdVersion, action v1alpha1.RetirementAction) bool) func(*Subject) []string {
	return func(s *Subject) []string {
		return slices.DeleteFunc(slices.Clone(versions), func(name string) bool { return !possible(s.version(name), s.retirement(name).Action) })
	}
}

// authored returns versions that the policy does not retire: only those may the author of the CRD change.
func authored(possible func(is *crdVersion) bool) func(*Subject) []string {
	return which(func(is *crdVersion, action v1alpha1.RetirementAction) bool { return action == "" && possible(is) })
}

var (
	// storages returns the versions that may become the storage version.
	storages = which(func(is *crdVersion, action v1alpha1.RetirementAction) bool {
		return is != nil && is.Served && !is.Storage && (action == "" || action == v1alpha1.RetirementKeep)
	})
	// retirable returns the versions that the policy may retire. A version that is not served belongs to the
	// author of the CRD, unless the policy unserved it.
	retirable = which(func(is *crdVersion, action v1alpha1.RetirementAction) bool {
		return is != nil && !is.Storage && (is.Served || action != "")
	})
	// withoutEffect returns the versions whose retirement leaves nothing to revert.
	withoutEffect = which(func(is *crdVersion, action v1alpha1.RetirementAction) bool {
		return action == v1alpha1.RetirementKeep || action != "" && is == nil
	})
)

// retirements returns versions, and what the policy may do with them: "v1 to Deprecate". The hub is never removed.
func retirements(actions ...string) func(*Subject) []string {
	return func(s *Subject) (all []string) {
		for _, name := range retirable(s) {
			for _, action := range actions {
				if name != hub || !strings.HasPrefix(action, "Remove") {
					all = append(all, name+" to "+action)
				}
			}
		}
		return all
	}
}

func retire(t target, s Step) {
	name, text, _ := strings.Cut(s.Detail, " to ")
	action, accepts := strings.CutSuffix(text, accepting)
	t.retire(name, v1alpha1.RetirementAction(action), accepts)
}

// subjects returns those that fulfil a condition.
func subjects(possible func(*Subject) bool) func(*Sequence) []string {
	return func(q *Sequence) (all []string) {
		for _, s := range q.Subjects {
			if possible(s) {
				all = append(all, s.Name)
			}
		}
		return all
	}
}

func cluster(*Sequence) []string { return []string{""} }
func fleets(*Sequence) []string  { return fleetNames }

// following returns the fleets whose users all write their CRD and their rulesets.
func (q *Sequence) following() []string {
	return slices.DeleteFunc(slices.Clone(fleetNames), func(fleet string) bool { return !q.follows(fleet) })
}

// converting returns those fleets, and the active policies with pods of their own.
func (q *Sequence) converting() []string {
	return append(q.following(), subjects(func(s *Subject) bool { return s.active() && s.Fleet == "" })(q)...)
}

// certificates returns those of a fleet, or of a policy with pods of its own.
func (t target) certificates() *v1alpha1.SelfManagedCertificates {
	if t.fleet != nil {
		return t.fleet.Certificates.SelfManaged
	}
	return t.Policy.Certificates.SelfManaged
}
