// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/deletion"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/retirement"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Plan is what to do next and what to say now.
type Plan struct {
	// Steps in the order in which they are to be done.
	Steps []step.Step
	// Status of the policy.
	Status v1alpha1.ConversionPolicyStatus
	// RecheckAfter is when to look again where no event will tell; zero for never.
	RecheckAfter time.Duration
}

// gates in the order of passing. Ownership comes before anything is created; drift after
// the pods, which it takes to undo it. What a retirement had changed is taken back
// before the storage version changes, which may need it. They speak through the
// condition of the step that they guard.
var gates = []struct {
	condition string
	pass      func(*planner) gate.Outcome
}{
	{v1alpha1.RulesValidCondition, func(p *planner) gate.Outcome { return p.converter.Valid(p.retirement.Removed()) }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Outcome { return p.activation.NotOwnedByAnother() }},
	{v1alpha1.CertificatesReadyCondition, certificatesReady},
	{v1alpha1.WebhookAvailableCondition, func(p *planner) gate.Outcome { return p.converter.Available() }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Outcome { return p.activation.NotDrifted() }},
	{v1alpha1.ConversionVerifiedCondition, func(p *planner) gate.Outcome { return p.activation.Verified() }},
	{v1alpha1.ConversionConfiguredCondition, func(p *planner) gate.Outcome { return p.activation.Configured() }},
	{v1alpha1.VersionsRetiredCondition, func(p *planner) gate.Outcome { return p.retirement.TakenBack() }},
	{v1alpha1.StorageMigratedCondition, func(p *planner) gate.Outcome { return p.retirement.Promoted() }},
	{v1alpha1.StorageMigratedCondition, func(p *planner) gate.Outcome { return p.migration.Migrated() }},
	{v1alpha1.VersionsRetiredCondition, func(p *planner) gate.Outcome { return p.retirement.Retired() }},
}

func certificatesReady(p *planner) gate.Outcome {
	if p.None() {
		return converter.NotNeeded()
	}
	if !p.keepsCertificates {
		p.certificates.Keep()
	}
	return p.certificates.Ready()
}

// Make decides what to do about a policy. What must not wait for a gate comes first.
func Make(cluster observed.Cluster) Plan {
	p := look(observed.InOrder(cluster))
	p.keepUp()
	switch {
	case p.IsDeleted():
		p.leave()
	case p.Policy.Spec.Suspend:
		p.pause()
	default:
		p.passGates()
	}
	p.reportHealth()
	p.trust()
	p.tidy()
	return p.plan()
}

// planner composes what the rooms decide: their work in order, and their parts of the
// status. A room reads what those before it have found out, and writes into none.
type planner struct {
	observed.Cluster
	gate.Work
	status v1alpha1.ConversionPolicyStatus

	converter    *converter.Converter
	certificates *certificates.Certificates
	activation   *activation.Activation
	health       *health.Health
	migration    *migration.Migration
	retirement   *retirement.Retirement
	deletion     *deletion.Deletion

	// keepsCertificates tells that certificates are seen to whatever the gates say.
	keepsCertificates bool
}

// look lets each room see what there is.
func look(cluster observed.Cluster) *planner {
	converts := converter.Look(cluster)
	p := &planner{Cluster: converts.Cluster, converter: converts, status: *cluster.Policy.Status.DeepCopy()}
	p.status.ObservedGeneration = p.Policy.Generation
	p.certificates = certificatesOf(converts)
	p.activation = activation.Look(converts, p.certificates)
	p.health = health.Look(converts, p.activation)
	p.migration = migration.Look(migration.Input{
		Cluster: p.Cluster, InForce: converts.InForce(), Drifted: converts.Drifted, InCharge: converts.InCharge(),
		AnswersWrongly: converts.AnswersWrongly(), RefusesTruncated: p.activation.RefusesTruncated(),
		Wanted: converts.Wanted, Ruleset: converts.Ruleset()})
	p.retirement = retirement.Look(converts, p.migration, p.health.Rows())
	p.deletion = deletion.Look(converts, p.migration.Status.MigrationEvidence)
	p.keepsCertificates = (converts.EverActive || p.Certificate != nil && !p.None()) && !p.deletion.LetsGo()
	return p
}

// certificatesOf are those that a converter serves, or is to serve.
func certificatesOf(converts *converter.Converter) *certificates.Certificates {
	return certificates.Look(certificates.Input{
		Cluster: converts.Cluster, Active: converts.Active, EverActive: converts.EverActive, Answerers: converts.Answerers()})
}

// take appends the work that rooms have added since the last time, in this order.
func (p *planner) take() {
	for _, room := range []*gate.Work{
		&p.converter.Work, &p.migration.Work, &p.retirement.Work, &p.certificates.Work, &p.activation.Work, &p.health.Work, &p.deletion.Work,
	} {
		p.Add(room.Take())
	}
}

// keepUp does what waits for no gate: runs that must not go on are stopped, and what a
// CustomResourceDefinition depends on is kept alive. A policy that is suspended, or whose
// rules were broken by an edit, still has a converter that must not expire, vanish or be
// bypassed.
func (p *planner) keepUp() {
	p.migration.NoticePruning()
	p.take()
	p.migration.Guard()
	p.take()
	if p.keepsCertificates {
		p.certificates.Keep()
		p.take()
	}
	if p.converter.EverActive && !p.Policy.Spec.Suspend {
		p.converter.KeepUp()
		p.take()
		if !p.deletion.LetsGo() {
			p.activation.TrustInAdmission()
			p.activation.Repair(p.migration.Status.MigrationEvidence)
		}
	}
	p.activation.MeasureWindow()
	p.take()
}

// pause stops what changes things and leaves alone what answers.
func (p *planner) pause() {
	p.migration.Suspend("spec.suspend is true")
	p.take()
	if p.converter.Drifted {
		p.report(v1alpha1.ConversionConfiguredCondition, gate.Stalled(v1alpha1.ReasonConversionDrifted,
			p.activation.WhatDrifted()+"; spec.suspend is true: set it to false to restore spec.conversion"))
	}
	p.summarize(gate.Outcome{Reason: v1alpha1.ReasonSuspended, Stop: true,
		Message: "spec.suspend is true: the operator changes nothing; converter pods keep serving"})
}

// leave does the remaining work for a policy that is being deleted. Its conditions go on
// to say how that is, Ready among them; that it cannot go is DeletionBlocked's alone.
func (p *planner) leave() {
	if !p.deletion.Held() {
		return
	}
	inUse := p.deletion.InUse()
	switch {
	case inUse.Reason == "" || p.deletion.Abandoned():
		p.forget(v1alpha1.DeletionBlockedCondition)
		last := p.deletion.Leave()
		p.take()
		p.summarize(last)
		return
	case p.Policy.Spec.Suspend:
		p.pause()
	default:
		p.passGates()
	}
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
		last = one.pass(p)
		p.take()
		if last.Reason != "" {
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
		p.report(v1alpha1.ConversionConfiguredCondition, p.activation.NotDrifted())
	}
	p.reportRest(reported, stopped)
	p.summarize(last)
}

// trust writes the CustomResourceDefinition where all that changes is what it trusts.
// What another client wrote there is theirs to repair.
func (p *planner) trust() {
	if !p.keepsCertificates || p.converter.Drifted || p.writesCRD() {
		return
	}
	if conversion := p.certificates.Trust(); conversion != nil {
		if p.Migrates() {
			p.migration.SuspendAll()
			p.take()
		}
		p.Do(step.SwitchCRD{Pin: step.PinOf(p.CRD), Conversion: conversion})
	}
}

// writesCRD tells that the CustomResourceDefinition is written by this plan already.
func (p *planner) writesCRD() bool {
	return wants[step.SwitchCRD](p) || wants[step.RestoreCRD](p) || wants[step.EditVersions](p)
}

// wants tells that this plan has a step of a kind.
func wants[S step.Step](p *planner) bool {
	for _, one := range p.Steps {
		if _, is := one.(S); is {
			return true
		}
	}
	return false
}
