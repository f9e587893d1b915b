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
	// subject and fleet report whether a subject or a fleet may be the target. Without both, it is the whole cluster.
	subject func(*Subject) bool
	fleet   func(State, string) bool
	// variants are those of which the step takes one, if there are any. possible reports whether one is possible for
	// the subject; by default, each is.
	variants []string
	possible func(*Subject, string) bool
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

// each returns the variants; an empty one if the action has none.
func (a action) each() []string {
	if len(a.variants) == 0 {
		return []string{""}
	}
	return a.variants
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
	{name: "begin", weight: 120, waits: true, subject: func(s *Subject) bool { return s.CRD == nil }, variants: places,
		change: func(t target, s Step) { t.begin(fleetAt(s.Detail)) }},
	// A version that is added before the converter is active is served unconverted: api/docs/lifecycle.md.
	{name: "add version", weight: 30, idle: true, subject: (*Subject).active,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is == nil }),
		change: func(t target, s Step) { t.add(s.Detail) }},
	{name: "store at", weight: 24, subject: func(s *Subject) bool { return s.Policy != nil && s.Policy.StorageVersion == "" }, variants: versions, possible: mayStore,
		change: func(t target, s Step) { t.store(s.Detail) }},
	{name: "serve", weight: 15, subject: (*Subject).hasPolicy,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is != nil && !is.Served }),
		change: func(t target, s Step) { t.version(s.Detail).Served = true }},
	{name: "unserve", weight: 8, subject: (*Subject).hasPolicy,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is != nil && is.Served && !is.Storage }),
		change: func(t target, s Step) { t.version(s.Detail).Served = false }},
	// The API server refuses to remove a version in status.storedVersions.
	{name: "remove version", weight: 8, idle: true, subject: (*Subject).migrates,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is != nil && !is.Storage && is.Name != hub }),
		change: func(t target, s Step) { t.remove(s.Detail) }},
	// An installer does not know the operator, which reverts that at most five times in ten minutes.
	{name: "overwrite conversion", weight: 3, idle: true, waits: true, breaks: true, subject: (*Subject).active,
		variants: []string{`{"strategy": "None", "webhook": null}`, `{"webhook": {"clientConfig": {"service": {"name": "another"}}}}`},
		shell:    `kubectl patch crd $CRD --type=merge -p "{\"spec\": {\"conversion\": $VARIANT}}"`},
	{name: "prune storedVersions", weight: 24, subject: func(s *Subject) bool { return s.CRD != nil }, do: (*player).pruneStoredVersions},
	{name: "end", weight: 4, waits: true, real: true, subject: (*Subject).hasPolicy,
		change: func(t target, _ Step) { *t.Subject = Subject{Name: t.Name} }, shell: `kubectl delete --ignore-not-found crd/$CRD cvp/$CRD`},

	// Users of policies and fleets.
	{name: "move", weight: 20, gentle: true, subject: (*Subject).active, variants: places,
		change: func(t target, s Step) { t.move(fleetAt(s.Detail)) }},
	{name: "change policy", weight: 12, gentle: true, subject: (*Subject).hasPolicy, variants: slices.Sorted(maps.Keys(changes)), possible: mayChange,
		change: func(t target, s Step) { changes[s.Detail](t.Policy) }},
	{name: "trigger migration", weight: 8, subject: (*Subject).hasPolicy,
		change: func(t target, s Step) { t.Policy.Migration.Trigger = s.text() }},
	{name: "suspend migrations", weight: 5, subject: (*Subject).migrates,
		change: func(t target, _ Step) { t.Policy.Migration.Suspend = true }},
	{name: "resume migrations", weight: 20, subject: func(s *Subject) bool { return s.Policy != nil && s.Policy.Migration.Suspend },
		change: func(t target, _ Step) { t.Policy.Migration.Suspend = false }},
	{name: "pause policy", weight: 8, idle: true, subject: (*Subject).active,
		change: func(t target, _ Step) { t.Policy.Paused = true }},
	{name: "resume policy", weight: 25, subject: (*Subject).paused,
		change: func(t target, _ Step) { t.Policy.Paused = false }},
	{name: "promote", weight: 15, subject: (*Subject).active, variants: versions, possible: mayStore,
		change: func(t target, s Step) {
			t.Policy.StorageVersion = v1alpha1.VersionName(s.Detail)
			t.store(s.Detail)
		}},
	// The promoted version is the storage version by now, and remains so.
	{name: "no longer promote", weight: 15, idle: true, subject: func(s *Subject) bool { return s.active() && s.Policy.StorageVersion != "" },
		change: func(t target, _ Step) { t.Policy.StorageVersion = "" }},
	// The result is known only after waiting. While migrations are suspended, nothing can be retired,
	// because that needs evidence.
	{name: "retire", weight: 10, waits: true, subject: (*Subject).migrates,
		variants: product(versions, " to Keep", " to Deprecate", " to Unserve"), possible: mayRetire, change: retire},
	// The status reports what would be lost once a migration has counted it: api/docs/lifecycle.md.
	{name: "retire by removal", weight: 10, waits: true, real: true, subject: (*Subject).migrates,
		variants: product(versions[1:], " to Remove", " to Remove"+accepting), possible: mayRetire,
		shell: `kubectl patch cvp $CRD --type=merge -p '{"spec": {"migration": {"trigger": "'$STEP'"}}}'
			kubectl wait cvp $CRD --timeout=5m --for=jsonpath='{.status.migration.trigger}'=$STEP
			kubectl wait cvp $CRD --timeout=5m --for=jsonpath='{.status.migration.state}'=Succeeded`,
		change: func(t target, s Step) {
			t.Policy.Migration.Trigger = s.text()
			retire(t, s)
		}},
	{name: "no longer retire", weight: 8, subject: (*Subject).hasPolicy, variants: versions, possible: withoutEffect,
		change: func(t target, s Step) { t.forgetRetirement(s.Detail) }},
	// The effects of an orphaned policy on the CRD remain.
	{name: "orphan policy", weight: 5, idle: true, waits: true, real: true, subject: (*Subject).hasPolicy,
		change: func(t target, _ Step) { t.Policy = nil },
		shell: `kubectl get cvp $CRD --ignore-not-found -o name | xargs -r kubectl patch --type=merge -p '{"spec": {"deletionPolicy": "Orphan"}}'
			kubectl delete --ignore-not-found cvp $CRD`},
	{name: "adopt", weight: 40, subject: func(s *Subject) bool { return s.CRD != nil && s.Policy == nil },
		change: func(t target, _ Step) { t.adopt(t.Fleet) }},
	{name: "scale fleet", weight: 6, gentle: true, real: true, fleet: anyFleet, variants: []string{"1", "2", "3", "4"},
		change: func(t target, s Step) {
			size, _ := strconv.ParseInt(s.Detail, 10, 32)
			t.fleet.Replicas = new(int32(size))
		}},
	{name: "rotate authority", weight: 10, gentle: true, waits: true, real: true, subject: (*Subject).ownPods, fleet: State.follows,
		change: func(t target, s Step) { t.certificates().RotationTrigger = s.text() }},

	// Failures, and clients that write what only the operator should.
	{name: "delete pods of fleet", weight: 6, gentle: true, real: true, fleet: anyFleet,
		shell: inSystem + `get pods -l app.kubernetes.io/instance=$INSTANCE -o name | tail -n +2 | xargs -r ` + inSystem + `delete --ignore-not-found --wait=false`},
	// A pod that starts before the operator writes them again lacks rules.
	{name: "delete rulesets of fleet", weight: 8, idle: true, waits: true, gentle: true, real: true, fleet: State.follows,
		shell: inSystem + `delete configmaps -l app.kubernetes.io/instance=$INSTANCE`},
	{name: "delete child", weight: 10, real: true, subject: (*Subject).ownPods, fleet: State.follows,
		variants: []string{"deployment/", "service/", "secret/ -tls", "secret/ -ca"},
		shell:    `set -- $VARIANT; ` + inSystem + `delete --ignore-not-found --wait=false $1$INSTANCE${2-}`},
	{name: "age certificate", weight: 6, idle: true, real: true, subject: (*Subject).ownPods, fleet: State.follows, do: (*player).ageCertificate},
	{name: "kill", weight: 22, real: true, variants: processes, do: (*player).kill},
	{name: "stop", weight: 8, real: true, variants: processes, do: (*player).stop},
	{name: "fill disk", weight: 4, real: true, do: (*player).fillDisk},
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

func mayChange(s *Subject, change string) bool {
	return s.Fleet == "" || !strings.HasSuffix(change, ownPods)
}

var places = append([]string{ownPods}, fleetNames...)

// fleetAt returns the fleet of a place; empty for pods of its own.
func fleetAt(place string) string { return strings.TrimSuffix(place, ownPods) }

// authored allows versions that the policy does not retire: only those may the author of the CRD change. possible
// gets nil for a version that the CRD does not have.
func authored(possible func(is *crdVersion) bool) func(*Subject, string) bool {
	return func(s *Subject, name string) bool {
		return s.retirement(name).Action == "" && possible(s.version(name))
	}
}

// mayStore reports whether a version may become the storage version.
func mayStore(s *Subject, name string) bool {
	is, action := s.version(name), s.retirement(name).Action
	return is != nil && is.Served && !is.Storage && (action == "" || action == v1alpha1.RetirementKeep)
}

// mayRetire reports whether the policy may retire a version: "v1 to Deprecate". One that is not served belongs to the
// author of the CRD, unless the policy unserved it.
func mayRetire(s *Subject, variant string) bool {
	name, _, _ := strings.Cut(variant, " to ")
	is := s.version(name)
	return is != nil && !is.Storage && (is.Served || s.retirement(name).Action != "")
}

// withoutEffect reports whether the retirement of a version leaves nothing to revert.
func withoutEffect(s *Subject, name string) bool {
	action := s.retirement(name).Action
	return action == v1alpha1.RetirementKeep || action != "" && s.version(name) == nil
}

func product(names []string, endings ...string) (all []string) {
	for _, name := range names {
		for _, ending := range endings {
			all = append(all, name+ending)
		}
	}
	return all
}

func retire(t target, s Step) {
	name, text, _ := strings.Cut(s.Detail, " to ")
	action, accepts := strings.CutSuffix(text, accepting)
	t.retire(name, v1alpha1.RetirementAction(action), accepts)
}

func anyFleet(State, string) bool { return true }

// certificates returns those of a fleet, or of a policy with pods of its own.
func (t target) certificates() *v1alpha1.SelfManagedCertificates {
	if t.fleet != nil {
		return t.fleet.Certificates.SelfManaged
	}
	return t.Policy.Certificates.SelfManaged
}
