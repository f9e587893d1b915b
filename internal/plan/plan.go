// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// Plan is what to do next and what to say now.
type Plan struct {
	// Steps in the order in which they are to be done.
	Steps []Step
	// Status of the policy.
	Status v1alpha1.ConversionPolicyStatus
	// RecheckAfter is when to look again where no event will tell; zero for never.
	RecheckAfter time.Duration
}

// gate decides one condition.
type gate struct {
	condition string
	pass      func(*state) outcome
}

// gates in the order of passing. Ownership comes before anything is created;
// drift after the pods, which it takes to undo it. What a retirement had changed is
// taken back before the storage version changes, which may need it. They speak
// through the condition of the step that they guard.
var gates = []gate{
	{v1alpha1.PlanValidCondition, planValid},
	{v1alpha1.ConversionConfiguredCondition, notOwnedByAnother},
	{v1alpha1.CertificatesReadyCondition, certificatesReady},
	{v1alpha1.WebhookAvailableCondition, webhookAvailable},
	{v1alpha1.ConversionConfiguredCondition, notDrifted},
	{v1alpha1.ConversionVerifiedCondition, conversionVerified},
	{v1alpha1.ConversionConfiguredCondition, conversionConfigured},
	{v1alpha1.VersionsRetiredCondition, retirementTakenBack},
	{v1alpha1.StorageMigratedCondition, storageVersionPromoted},
	{v1alpha1.StorageMigratedCondition, storageMigrated},
	{v1alpha1.VersionsRetiredCondition, versionsRetired},
}

// Make decides what to do about a policy. What must not wait for a gate comes
// first: runs that the CustomResourceDefinition no longer bears (guard.go), and
// the upkeep of what already serves (carried.go, upkeep.go).
func Make(observed Observed) Plan {
	s := newState(observed)
	s.rememberArmed()
	s.carry()
	s.prepare()
	s.judgeEvidence()
	s.noticePruning()
	s.noteVersions()
	s.notePreserved()
	s.guardRuns()
	s.upkeep()
	s.measureGap()
	switch {
	case !s.Policy.DeletionTimestamp.IsZero():
		s.leave()
	case s.Policy.Spec.Suspend:
		s.pause()
	default:
		s.reach()
	}
	s.noteFailures()
	s.noteOversized()
	s.resample()
	s.trust()
	s.reportCertificates()
	s.reportVersions()
	s.tidy()
	return s.plan
}

// state is a plan in the making.
type state struct {
	Observed
	plan Plan
	// armed tells that the CRD converts through a converter of this policy.
	armed bool
	// engaged tells that it does, or did until somebody else changed it: objects
	// may be unreadable, or wrong, without the converter.
	engaged bool
	// drifted tells that somebody else changed it since, and drift what was
	// decided about that.
	drifted bool
	drift   outcome
	// planHash is the wanted converter (converter.go), empty where there is none, and
	// planText the compiled rules of the policy where that is what it is.
	planText, planHash string
	// carried are the hashes of all plans that converter pods must serve, sorted.
	carried []string
	// rendered is what to deploy for the converter, and renderErr why it cannot be.
	rendered  workload
	renderErr error
	// endpoint is where the wanted image is to be found.
	endpoint ImageEndpoint
	// switched tells that the CRD is being pointed at the converter.
	switched bool
	// source is where certificates come from, and offered what it has.
	source  source
	offered offer
	// serving is what pods mount, and trusted what the CRD trusts while it is armed.
	serving serving
	trusted pki.Bundle
	// rotated tells that certificates were seen to.
	rotated bool
	// sampling tells that objects are being read, which takes rights, and clearing
	// that their managedFields are being changed.
	sampling, clearing bool
	// reading tells that metrics are being read.
	reading bool
	// placesKnown tells which preserved fields have a place; nil until it was asked.
	placesKnown *conversion.Places
	// takenBack is what somebody else took back in spec.versions since the last look.
	takenBack []string
}

func newState(observed Observed) *state {
	s := &state{Observed: inOrder(observed)}
	status := observed.Policy.Status.DeepCopy()
	status.ObservedGeneration = observed.Policy.Generation
	if observed.Policy.DeletionTimestamp.IsZero() {
		apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.DeletionBlockedCondition)
	}
	status.CRD, status.VersionsEdit = nil, nil
	s.choose()
	if crd := observed.CRD; crd != nil {
		s.armed = s.ours() && !s.adopts()
		if s.armed {
			status.ArmedCRD, status.ReleasedTime = crd.UID, nil
		}
		s.engaged = status.ArmedCRD == crd.UID
		s.drifted = s.isDrifted()
		status.CRD = &v1alpha1.CRDStatus{
			UID:            crd.UID,
			Generation:     crd.Generation,
			Strategy:       string(crds.Strategy(crd)),
			ServedVersions: crds.ServedVersions(crd),
			StorageVersion: crds.StorageVersion(crd),
			StoredVersions: slices.Clone(crd.Status.StoredVersions),
		}
	}
	if !s.engaged {
		status.ArmedCRD, status.Webhook, status.Drift = "", nil, nil
	}
	s.plan.Status = *status
	s.readCertificates()
	return s
}

// pause stops what changes things and leaves alone what answers.
func (s *state) pause() {
	for _, run := range s.Runs {
		s.suspend(run)
	}
	s.standStill("spec.suspend is true")
	if s.drifted {
		s.report(v1alpha1.ConversionConfiguredCondition, stalled(v1alpha1.ReasonConversionDrifted,
			s.whatDrifted()+"; spec.suspend is true, so nothing is written: set it to false, and it is written back"))
	}
	s.summarize(outcome{reason: v1alpha1.ReasonSuspended, stop: true,
		message: "spec.suspend is true: nothing is changed; converter pods keep answering"})
}

// reach passes the gates until one stops, and reports all of them.
func (s *state) reach() {
	if !slices.Contains(s.Policy.Finalizers, Finalizer) {
		s.do(Hold{})
	}
	reported := map[string]bool{}
	last := outcome{}
	for _, gate := range gates {
		last = gate.pass(s)
		if last.reason != "" {
			reported[gate.condition] = true
			s.report(gate.condition, last)
		}
		if last.stop {
			last.gate = gate.condition
			break
		}
	}
	if s.drifted && !reported[v1alpha1.ConversionConfiguredCondition] {
		reported[v1alpha1.ConversionConfiguredCondition] = true
		s.report(v1alpha1.ConversionConfiguredCondition, notDrifted(s))
	}
	s.reportRest(reported, last.gate)
	s.summarize(last)
}

// reportRest says of the gates behind the one that stopped that they were not evaluated.
func (s *state) reportRest(reported map[string]bool, stopped string) {
	for _, condition := range v1alpha1.Gates {
		if !reported[condition] {
			s.report(condition, outcome{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotEvaluated,
				message: "waits for " + stopped})
		}
	}
}

func (s *state) do(step Step) { s.plan.Steps = append(s.plan.Steps, step) }

// recheck asks for another look after the duration, or earlier.
func (s *state) recheck(after time.Duration) {
	after = max(after, time.Second)
	if s.plan.RecheckAfter == 0 || after < s.plan.RecheckAfter {
		s.plan.RecheckAfter = after
	}
}

func (s *state) pin() Pin {
	return Pin{Name: s.CRD.Name, UID: s.CRD.UID, ResourceVersion: s.CRD.ResourceVersion}
}
