// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// action is what authors of CRDs, users of policies or other clients do, or a failure.
type action struct {
	Name string
	// weight is the relative frequency.
	weight int
	// on and onFleet report whether a subject or a fleet may be the target. Without both, it is the whole cluster.
	on      func(*Subject) bool
	onFleet func(State, string) bool
	// variants are those of which the step takes one, if there are any. possible reports whether one is possible for
	// the subject; by default, each is.
	variants []string
	possible func(*Subject, string) bool
	// change changes the expected state of the subject, or of the fleet. Author is set if it is the author of the CRD who writes that; a change of a
	// policy lets the operator write it.
	change func(*Subject, Step)
	Author bool
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

// actions has every action. A paused or orphaned policy writes no CRD and stores no ruleset, so that
// its fleet gets no action that needs that.
var actions = []action{
	// Authors of CRDs, and other clients that write them.
	{Name: "begin", Author: true, weight: 120, waits: true, on: func(s *Subject) bool { return !s.exists() }, variants: places,
		change: func(is *Subject, s Step) { is.begin(s.Detail) }},
	// A version that is added before the converter is active is served unconverted: api/docs/lifecycle.md.
	{Name: "add version", Author: true, weight: 30, idle: true, on: (*Subject).active,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is == nil }),
		change: func(is *Subject, s Step) { is.add(s.Detail) }},
	{Name: "store at", Author: true, weight: 24, on: func(s *Subject) bool { return s.Policy != nil && s.Policy.StorageVersion == "" }, variants: versions, possible: mayStore,
		change: func(is *Subject, s Step) { is.store(s.Detail) }},
	{Name: "serve", Author: true, weight: 15, on: (*Subject).hasPolicy,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is != nil && !is.Served }),
		change: func(is *Subject, s Step) { is.version(s.Detail).Served = true }},
	{Name: "unserve", Author: true, weight: 8, on: (*Subject).hasPolicy,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is != nil && is.Served && !is.Storage }),
		change: func(is *Subject, s Step) { is.version(s.Detail).Served = false }},
	// The API server refuses to remove a version in status.storedVersions.
	{Name: "remove version", Author: true, weight: 8, idle: true, on: (*Subject).migrates,
		variants: versions, possible: authored(func(is *crdVersion) bool { return is != nil && !is.Storage && is.Name != hub }),
		change: func(is *Subject, s Step) { is.remove(s.Detail) }},
	// An installer does not know the operator, which reverts that at most five times in ten minutes.
	{Name: "overwrite conversion", weight: 3, idle: true, waits: true, breaks: true, on: (*Subject).active,
		variants: []string{`{"strategy": "None", "webhook": null}`, `{"webhook": {"clientConfig": {"service": {"name": "another"}}}}`},
		shell:    `kubectl patch crd $CRD --type=merge -p "{\"spec\": {\"conversion\": $VARIANT}}"`},
	{Name: "prune storedVersions", weight: 24, on: (*Subject).exists, do: (*player).pruneStoredVersions},
	{Name: "end", weight: 4, waits: true, real: true, on: (*Subject).hasPolicy,
		change: func(is *Subject, _ Step) { *is = Subject{Name: is.Name} }, shell: `kubectl delete --ignore-not-found crd/$CRD cvp/$CRD`},

	// Users of policies and fleets.
	{Name: "move", weight: 20, gentle: true, on: (*Subject).active, variants: places,
		change: func(is *Subject, s Step) { is.move(s.Detail) }},
	{Name: "change policy", weight: 12, gentle: true, on: (*Subject).hasPolicy, variants: changes,
		possible: func(s *Subject, change string) bool { return s.Fleet == "" || !strings.Contains(change, "dedicated") },
		change:   func(is *Subject, s Step) { parse([]byte(s.Detail), is.Policy) }},
	{Name: "trigger migration", weight: 8, on: (*Subject).hasPolicy,
		change: func(is *Subject, s Step) { is.Policy.Migration.Trigger = s.text() }},
	{Name: "suspend migrations", weight: 5, on: (*Subject).migrates,
		change: func(is *Subject, _ Step) { is.Policy.Migration.Suspend = true }},
	{Name: "resume migrations", weight: 20, on: func(s *Subject) bool { return s.Policy != nil && s.Policy.Migration.Suspend },
		change: func(is *Subject, _ Step) { is.Policy.Migration.Suspend = false }},
	{Name: "pause policy", weight: 8, idle: true, on: (*Subject).active,
		change: func(is *Subject, _ Step) { is.Policy.Paused = true }},
	{Name: "resume policy", weight: 25, on: (*Subject).paused,
		change: func(is *Subject, _ Step) { is.Policy.Paused = false }},
	{Name: "promote", weight: 15, on: (*Subject).active, variants: versions, possible: mayStore,
		change: func(is *Subject, s Step) {
			is.Policy.StorageVersion = v1alpha1.VersionName(s.Detail)
			is.store(s.Detail)
		}},
	// The promoted version is the storage version by now, and remains so.
	{Name: "no longer promote", weight: 15, idle: true, on: func(s *Subject) bool { return s.active() && s.Policy.StorageVersion != "" },
		change: func(is *Subject, _ Step) { is.Policy.StorageVersion = "" }},
	// The result is known only after waiting. While migrations are suspended, nothing can be retired,
	// because that needs evidence.
	{Name: "retire", weight: 10, waits: true, on: (*Subject).migrates,
		variants: []string{"v1beta1 to Keep", "v1 to Keep", "v2 to Keep", "v1beta1 to Deprecate", "v1 to Deprecate", "v2 to Deprecate", "v1beta1 to Unserve", "v1 to Unserve", "v2 to Unserve"},
		possible: mayRetire,
		change:   func(is *Subject, s Step) { is.retire(s.Detail) }},
	// The status reports what would be lost once a migration has counted it: api/docs/lifecycle.md.
	{Name: "retire by removal", weight: 10, waits: true, real: true, on: (*Subject).migrates,
		variants: []string{"v1 to Remove", "v2 to Remove", "v1 to Remove" + accepting, "v2 to Remove" + accepting}, possible: mayRetire,
		shell: `kubectl patch cvp $CRD --type=merge -p '{"spec": {"migration": {"trigger": "'$STEP'"}}}'
			kubectl wait cvp $CRD --timeout=5m --for=jsonpath='{.status.migration.trigger}'=$STEP
			kubectl wait cvp $CRD --timeout=5m --for=jsonpath='{.status.migration.state}'=Succeeded`,
		change: func(is *Subject, s Step) {
			is.Policy.Migration.Trigger = s.text()
			is.retire(s.Detail)
		}},
	{Name: "no longer retire", weight: 8, on: (*Subject).hasPolicy, variants: versions, possible: withoutEffect,
		change: func(is *Subject, s Step) { is.forgetRetirement(s.Detail) }},
	// The effects of an orphaned policy on the CRD remain.
	{Name: "orphan policy", weight: 5, idle: true, waits: true, real: true, on: (*Subject).hasPolicy,
		change: func(is *Subject, _ Step) { is.Policy = nil },
		shell: `kubectl get cvp $CRD --ignore-not-found -o name | xargs -r kubectl patch --type=merge -p '{"spec": {"deletionPolicy": "Orphan"}}'
			kubectl delete --ignore-not-found cvp $CRD`},
	{Name: "adopt", weight: 40, on: func(s *Subject) bool { return s.exists() && s.Policy == nil },
		change: func(is *Subject, _ Step) { is.adopt(is.Fleet) }},
	{Name: "scale fleet", weight: 6, gentle: true, real: true, onFleet: anyFleet, variants: []string{`{"replicas": 1}`, `{"replicas": 2}`, `{"replicas": 3}`, `{"replicas": 4}`},
		change: func(_ *Subject, s Step) { parse([]byte(s.Detail), s.fleet()) }},
	{Name: "rotate authority", weight: 10, gentle: true, waits: true, real: true, on: (*Subject).ownPods, onFleet: State.follows,
		change: func(_ *Subject, s Step) { s.certificates().RotationTrigger = s.text() }},

	// Failures, and clients that write what only the operator should.
	{Name: "delete pods of fleet", weight: 6, gentle: true, real: true, onFleet: anyFleet,
		shell: inSystem + `get pods -l app.kubernetes.io/instance=$INSTANCE -o name | tail -n +2 | xargs -r ` + inSystem + `delete --ignore-not-found --wait=false`},
	// A pod that starts before the operator writes them again lacks rules.
	{Name: "delete rulesets of fleet", weight: 8, idle: true, waits: true, gentle: true, real: true, onFleet: State.follows,
		shell: inSystem + `delete configmaps -l app.kubernetes.io/instance=$INSTANCE`},
	{Name: "delete child", weight: 10, real: true, on: (*Subject).ownPods, onFleet: State.follows,
		variants: []string{"deployment/", "service/", "secret/ -tls", "secret/ -ca"},
		shell:    `set -- $VARIANT; ` + inSystem + `delete --ignore-not-found --wait=false $1$INSTANCE${2-}`},
	{Name: "age certificate", weight: 6, idle: true, real: true, on: (*Subject).ownPods, onFleet: State.follows, do: (*player).ageCertificate},
	{Name: "kill", weight: 22, real: true, variants: processes, do: (*player).kill},
	{Name: "stop", weight: 8, real: true, variants: processes, do: (*player).stop},
	{Name: "fill disk", weight: 4, real: true, do: (*player).fillDisk},
}

const (
	inSystem = "kubectl -n " + system + " "
	// accepting ends the retirement of a version whose values may be lost.
	accepting = ", accepting losses"
)

// changes are those of a policy's spec by a user. Only policies with pods of their own can have the last ones.
var changes = []string{
	`{"migration": {"verify": "Full"}}`, `{"migration": {"verify": "None"}}`,
	`{"migration": {"maxWritesPerSecond": 10}}`, `{"migration": {"maxWritesPerSecond": null}}`,
	`{"converter": {"declarative": {"overflow": "Drop"}}}`, `{"converter": {"declarative": {"overflow": "Fail"}}}`,
	`{"workload": {"dedicated": {"replicas": 1}}}`, `{"workload": {"dedicated": {"replicas": 3}}}`,
}

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

func anyFleet(State, string) bool { return true }

// certificates returns those of a fleet, or of a policy with pods of its own.
func (s Step) certificates() *v1alpha1.SelfManagedCertificates {
	if fleet := s.fleet(); fleet != nil {
		return fleet.Certificates.SelfManaged
	}
	return s.subject().Policy.Certificates.SelfManaged
}
