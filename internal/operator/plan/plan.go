// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/deletion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/retirement"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Plan is the decision about one policy.
type Plan struct {
	// Steps in the order in which they are carried out.
	Steps []step.Step
	// Status of the policy.
	Status v1alpha1.ConversionPolicyStatus
	// RecheckAfter is when to reconcile again if no event does; zero for never.
	RecheckAfter time.Duration
}

// gates that a policy passes, in this order. Each reports the condition of the step that
// it guards.
//
// Ownership and deadlocks come before the operator creates anything. Drift comes after the pods, because
// a repair needs one. A retirement is rolled back before the storage version changes,
// because the change may need the version.
var gates = []struct {
	condition string
	decide    func(*planner) gate.Decision
}{
	{v1alpha1.RulesValidCondition, func(p *planner) gate.Decision { return p.converter.Valid(p.retirement.Removed()) }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Decision { return p.activation.NotOwnedByAnother() }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Decision { return p.activation.NoDeadlock() }},
	{v1alpha1.WebhookAvailableCondition, func(p *planner) gate.Decision { return p.converter.FleetExists() }},
	{v1alpha1.CertificatesReadyCondition, func(p *planner) gate.Decision { return p.certificates.Ready() }},
	{v1alpha1.WebhookAvailableCondition, func(p *planner) gate.Decision { return p.converter.Available() }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Decision { return p.activation.NotDrifted() }},
	{v1alpha1.ConversionVerifiedCondition, func(p *planner) gate.Decision { return p.activation.Verified() }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Decision { return p.activation.Configured() }},
	{v1alpha1.VersionsRetiredCondition, func(p *planner) gate.Decision { return p.retirement.RolledBack() }},
	{v1alpha1.StorageMigratedCondition, func(p *planner) gate.Decision { return p.retirement.Promoted() }},
	{v1alpha1.StorageMigratedCondition, func(p *planner) gate.Decision { return p.migration.Migrated() }},
	{v1alpha1.VersionsRetiredCondition, func(p *planner) gate.Decision { return p.retirement.Retired() }},
}

// Make decides what to do about a policy:
//
//  1. gather: each package determines the state of its area
//  2. upkeep: the work that waits for no gate
//  3. the gates in order; or the next step of a deletion; or nothing, if the policy is paused
//  4. problems after the activation, and cleaning up
//
// A policy that this version of the operator cannot follow is handled as if it were paused: the
// packages must not act on its remaining fields.
func Make(cluster observed.Cluster) Plan {
	unsupported := cluster.Policy.Spec.Unsupported()
	if unsupported != "" {
		cluster.Policy = cluster.Policy.DeepCopy()
		cluster.Policy.Spec.Paused = true
	}
	p := gather(observed.Forgetting(observed.InOrder(cluster)))
	p.unsupported = unsupported
	p.upkeep()
	if p.IsDeleted() {
		p.delete()
	} else {
		p.follow()
	}
	p.reportHealth()
	p.updateCABundle()
	p.cleanUp()
	return p.plan()
}

// planner collects what the packages decide: steps in order, and their parts of the status.
// Each package reads the values that were gathered before its own, and writes into none.
type planner struct {
	observed.Cluster
	gate.Work
	status v1alpha1.ConversionPolicyStatus
	// unsupported says why this version of the operator cannot follow the policy; empty if it can.
	unsupported string

	converter    *converter.Converter
	deletion     *deletion.Deletion
	certificates *certificates.Certificates
	// leaves are the certificates of the place that the policy is about to leave; nil if there is none.
	leaves     *certificates.Certificates
	activation *activation.Activation
	health     *health.Health
	migration  *migration.Migration
	retirement *retirement.Retirement
}

// gather has each package determine the state of its area.
func gather(cluster observed.Cluster) *planner {
	converts := converter.Gather(cluster)
	cluster = converts.Cluster
	evidence := migration.Evidence(cluster)
	leaves := deletion.Gather(converts, evidence)
	certified := certificates.Gather(certificatesInput(converts, leaves.LetsGo()))
	active := activation.Gather(activation.Input{
		Converter: converts, Certificates: certified, Evidence: evidence,
		Repairs: converts.EverActive && !cluster.Policy.Spec.Paused && !leaves.LetsGo()})
	healthy := health.Gather(converts, active)
	migrates := migration.Gather(migration.Input{
		Cluster: cluster, InForce: converts.InForce(), Drifted: converts.Drifted, InCharge: converts.InCharge(),
		AnswersWrongly: converts.AnswersWrongly(), RefusesTruncated: active.RefusesTruncated(),
		Evidence: evidence, Wanted: names.RevisionOf(converts.Wanted).Hash, Ruleset: converts.Ruleset(), RulesetConfigMap: converts.RulesetConfigMap()})
	p := &planner{
		Cluster: cluster, status: *cluster.Policy.Status.DeepCopy(),
		converter: converts, deletion: leaves, certificates: certified, activation: active, health: healthy, migration: migrates,
		retirement: retirement.Gather(converts, migrates, healthy.Rows()),
	}
	if in, found := placeToLeave(converts); found && !leaves.LetsGo() {
		p.leaves = certificates.Gather(in)
	}
	p.status.ObservedGeneration = p.Policy.Generation
	return p
}

// certificatesInput are the certificates of a converter, which a deleted policy may let go.
func certificatesInput(converts *converter.Converter, letsGo bool) certificates.Input {
	in := certificates.InputOf(converts.Cluster)
	in.Active, in.EverActive, in.ServingEndpoints = converts.Active && converts.NamesPlace(), converts.EverActive, converts.ServingEndpoints()
	in.OfFleet = converts.Fleet() != ""
	in.Pods, in.Ending = converts.PodsOf(converts.Fleet()), converts.EndingOf(converts.Fleet())
	in.InUse = (converts.EverActive || converts.Certificate != nil && !converts.None()) && !letsGo
	return in
}

// placeToLeave are the certificates of the pods that the CustomResourceDefinition names, if the policy
// wants others. They must stay valid and trusted until it has moved, which may take long: the fleet
// that it wants may not exist. It reports false if there are none.
func placeToLeave(c *converter.Converter) (certificates.Input, bool) {
	in := certificates.InputOf(c.Cluster)
	if !c.Active || c.NamesPlace() || !c.PointsHere() {
		return in, false
	}
	fleet := c.NamedFleet()
	in.ServerName, in.Certificate, in.OfFleet = c.ServerNameAt(fleet), c.CertificateAt(fleet), fleet != ""
	in.Pods, in.Ending = c.PodsOf(fleet), c.EndingOf(fleet)
	in.ServingEndpoints, in.Active, in.EverActive, in.InUse, in.NotNeeded = in.Pods, true, true, true, false
	return in, in.Certificate != nil && (in.OfFleet || c.Authority != nil)
}

// upkeep is the work that waits for no gate: runs that must not continue are stopped, and
// what the CustomResourceDefinition depends on is kept running. The converter of a policy
// that is paused, or that has invalid rules after an edit, must not expire, vanish or
// be bypassed either.
func (p *planner) upkeep() {
	p.Add(p.retirement.Upkeep())
	p.Add(p.migration.Upkeep())
	p.Add(p.certificates.Upkeep())
	if p.leaves != nil {
		p.Add(p.leaves.Upkeep())
	}
	p.Add(p.converter.Upkeep())
	p.Add(p.activation.Upkeep())
}

// follow works as the policy requires.
func (p *planner) follow() {
	switch {
	case p.unsupported != "":
		p.refuse()
	case p.Policy.Spec.Paused:
		p.pause()
	default:
		p.passGates()
	}
}

// refuse stops migrations and leaves everything that serves unchanged.
func (p *planner) refuse() {
	p.Add(p.migration.Suspend(p.unsupported))
	refused := gate.Stalled(v1alpha1.ReasonUnsupportedPolicy, p.unsupported)
	p.report(v1alpha1.RulesValidCondition, refused)
	p.reportRest(map[string]bool{v1alpha1.RulesValidCondition: true}, v1alpha1.RulesValidCondition)
	p.summarize(refused)
}

// pause stops migrations and leaves everything that serves unchanged.
func (p *planner) pause() {
	p.Add(p.migration.Suspend("spec.paused is true"))
	if p.converter.Drifted {
		p.report(v1alpha1.ConversionConfiguredCondition, gate.Stalled(v1alpha1.ReasonDrifted,
			p.activation.WhatDrifted()+"; spec.paused is true: set it to false to restore spec.conversion"))
	}
	p.summarize(gate.Outcome{Reason: v1alpha1.ReasonPaused, Stop: true,
		Message: "spec.paused is true: changes wait; converter pods keep serving"})
}

// delete takes the next step of a deletion. While something blocks it, the policy works as
// if it were not deleted, and DeletionBlocked says what blocks it.
func (p *planner) delete() {
	if !p.deletion.Held() {
		return
	}
	inUse := p.deletion.InUse()
	if inUse.Reason == "" || p.deletion.Orphaned() {
		p.forget(v1alpha1.DeletionBlockedCondition)
		last := p.deletion.Leave()
		p.Add(last.Work)
		p.summarize(last.Outcome)
		return
	}
	p.follow()
	p.report(v1alpha1.DeletionBlockedCondition, inUse)
}

// passGates passes the gates until one stops, and reports all of them.
func (p *planner) passGates() {
	if !p.deletion.Held() {
		p.Do(step.AddFinalizer{})
	}
	reported := map[string]bool{}
	last, stopped := gate.Outcome{}, ""
	for _, one := range gates {
		decision := one.decide(p)
		p.Add(decision.Work)
		if last = decision.Outcome; last.Reason != "" {
			reported[one.condition] = true
			p.report(one.condition, last)
		}
		if last.Stop {
			stopped = one.condition
			break
		}
	}
	if p.converter.Drifted && !reported[v1alpha1.ConversionConfiguredCondition] {
		reported[v1alpha1.ConversionConfiguredCondition] = true
		p.report(v1alpha1.ConversionConfiguredCondition, p.activation.NotDrifted().Outcome)
	}
	p.reportRest(reported, stopped)
	p.summarize(last)
}

// updateCABundle writes caBundle into the CustomResourceDefinition if nothing else in
// spec.conversion changes. The drift gate handles what another client wrote there.
func (p *planner) updateCABundle() {
	keeps := p.certificates
	if p.leaves != nil {
		keeps = p.leaves
	}
	if !keeps.InUse || p.converter.Drifted || p.writesCRD() || !p.converter.Copied() {
		return
	}
	if bundle := keeps.NextCABundle(); bundle != nil {
		if p.Migrates() {
			p.Add(p.migration.SuspendAll())
		}
		conversion := p.CRD.Spec.Conversion.DeepCopy()
		conversion.Webhook.ClientConfig.CABundle = bundle
		p.Add(p.converter.Switch(conversion, !p.Migrates() && !keeps.Refused()))
	}
}

// writesCRD reports that this plan writes the CustomResourceDefinition.
func (p *planner) writesCRD() bool {
	return wants[step.SwitchCRD](p) || wants[step.RestoreCRD](p) || wants[step.EditVersions](p) || wants[step.AddStorageVersion](p)
}

// wants reports that this plan has a step of a kind.
func wants[S step.Step](p *planner) bool {
	for _, one := range p.Steps {
		if _, is := one.(S); is {
			return true
		}
	}
	return false
}
