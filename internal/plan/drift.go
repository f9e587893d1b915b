// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// The budget of repairs. Each one makes every API server rebuild the storage of
// the kind; a writer that does not give in within these is not won over by more.
const (
	repairsAtMost = 5
	repairWindow  = 10 * time.Minute
)

// isDrifted reports whether somebody else wrote spec.conversion since the policy
// did. It needs no memory of what the policy wrote: the API server keeps account
// of who wrote what. A change of the policy's own mind is no drift; what another
// installation of the operator applied is, and may be all that is left of it. Where
// nothing is to convert, nothing can drift: a webhook of somebody's is one that was
// not asked for.
func (s *state) isDrifted() bool {
	crd, known := s.CRD, s.Policy.Status.Drift
	if s.none() || !s.engaged || !crd.DeletionTimestamp.IsZero() ||
		s.ours() && crds.ConversionIsBy(crd, ManagedBy) {
		return false
	}
	seen := known != nil && known.CRDGeneration == crd.Generation
	if s.injected() && s.convertsAsWanted() {
		return false // caBundle is somebody else's to write
	}
	return !s.convertsAsWanted() || !seen && s.Policy.Spec.Drift != v1alpha1.DriftReport
}

// convertsAsWanted: whoever wrote spec.conversion, it names the converter that it is
// to name, or the one that it named before somebody else wrote.
func (s *state) convertsAsWanted() bool {
	var right []string
	if s.planHash != "" {
		right = append(right, s.planHash)
	}
	for _, armed := range s.Policy.Status.ArmedPlans {
		if armed.ReplacedTime == nil {
			right = append(right, armed.Hash)
		}
	}
	return slices.ContainsFunc(right, func(hash string) bool {
		return equality.Semantic.DeepEqual(s.CRD.Spec.Conversion, s.conversion(hash))
	})
}

// answerDrift writes spec.conversion back, or says why not. To write it back
// takes one ready pod and no more: a conversion that fails is noticed, while
// strategy None serves and stores wrong data and says nothing.
func (s *state) answerDrift() {
	if !s.drifted || s.lettingGo() {
		return
	}
	hash := s.answerable()
	switch {
	case s.Policy.Spec.Drift == v1alpha1.DriftReport:
		s.recordDrift(v1alpha1.DriftReported)
	case s.contested():
		s.recordDrift(v1alpha1.DriftContested)
		s.recheck(s.plan.Status.Drift.Repairs[0].Add(repairWindow).Sub(s.Now))
	case hash != "" && s.usable():
		s.recordDrift(v1alpha1.DriftRepaired)
		s.switchCRD(hash)
	}
}

// contested reports that it was repaired too often, too recently. A change of
// the policy's spec is somebody who has looked at it: the count starts again.
func (s *state) contested() bool {
	drift := s.plan.Status.Drift
	if drift == nil || drift.PolicyGeneration != s.Policy.Generation || len(drift.Repairs) < repairsAtMost {
		return false
	}
	repaired := drift.CRDGeneration == s.CRD.Generation && drift.Answer == v1alpha1.DriftRepaired
	return !repaired && s.Now.Before(drift.Repairs[0].Add(repairWindow))
}

// recordDrift counts each foreign write once, however often it takes to answer it.
func (s *state) recordDrift(answer v1alpha1.DriftAnswer) {
	s.drift = s.driftOutcome(answer)
	before := s.plan.Status.Drift
	if before != nil && before.CRDGeneration == s.CRD.Generation && before.Answer == answer &&
		before.PolicyGeneration == s.Policy.Generation {
		return
	}
	now := *s.second()
	drift := v1alpha1.DriftStatus{
		LastManager: crds.ConversionWriter(s.CRD, ManagedBy), LastTime: now,
		CRDGeneration: s.CRD.Generation, PolicyGeneration: s.Policy.Generation, Answer: answer,
	}
	if before != nil && before.PolicyGeneration == s.Policy.Generation {
		drift.Repairs = slices.Clone(before.Repairs)
	}
	if answer == v1alpha1.DriftRepaired {
		drift.Repairs = append(drift.Repairs, now)
		drift.Repairs = drift.Repairs[max(0, len(drift.Repairs)-repairsAtMost):]
	}
	s.plan.Status.Drift = &drift
	s.do(RecordDrift{CRD: s.CRD.UID, Drift: drift, Evidence: s.plan.Status.Evidence, Note: s.drift.message})
}

// notDrifted: nobody else changed spec.conversion since it was armed.
func notDrifted(s *state) outcome {
	if s.drifted && s.drift.reason == "" {
		return waiting(v1alpha1.ReasonConversionDrifted, s.whatDrifted()+": it is written back once the converter is ready")
	}
	return s.drift
}

// driftOutcome says what was decided about a foreign write.
func (s *state) driftOutcome(answer v1alpha1.DriftAnswer) outcome {
	switch answer {
	case v1alpha1.DriftReported:
		return stalled(v1alpha1.ReasonConversionDrifted, s.whatDrifted()+
			"; spec.drift is Report, so nothing is written: set it to Repair, or delete this policy if another converter takes over")
	case v1alpha1.DriftContested:
		return stalled(v1alpha1.ReasonConversionContested, fmt.Sprintf(
			"%s, and was undone %d times within %d minutes: %s; it is undone again when those are past, or when the spec of this policy changes",
			s.whatDrifted(), repairsAtMost, int(repairWindow.Minutes()), s.howToEndIt()))
	default:
		return waiting(v1alpha1.ReasonConversionDrifted, s.whatDrifted()+": writing it back")
	}
}

// whatDrifted names who did what.
func (s *state) whatDrifted() string {
	who := fieldManager(crds.ConversionWriter(s.CRD, ManagedBy))
	switch {
	case crds.Strategy(s.CRD) == apiextensionsv1.NoneConverter:
		return who + " set spec.conversion of the CustomResourceDefinition to strategy None"
	case crds.ConversionIsBy(s.CRD, ManagedBy):
		return "another installation of this operator pointed spec.conversion of the CustomResourceDefinition at " + webhookOf(s.CRD)
	case !s.armed:
		return who + " pointed spec.conversion of the CustomResourceDefinition at " + webhookOf(s.CRD)
	case !bytes.Equal(s.armedBundle(), s.caBundle()):
		return who + " changed caBundle in spec.conversion of the CustomResourceDefinition"
	}
	return who + " changed spec.conversion of the CustomResourceDefinition"
}

// fieldManager names who wrote; empty is who left no trace.
func fieldManager(name string) string {
	if name == "" {
		return "a field manager that left no trace in metadata.managedFields"
	}
	return fmt.Sprintf("field manager %q", name)
}

// howToEndIt is what ends a war of writers.
func (s *state) howToEndIt() string {
	if annotation := crds.Injector(s.CRD); annotation != "" {
		return "remove the annotation " + annotation + " from the CustomResourceDefinition"
	}
	return "let that writer leave spec.conversion out, or set spec.drift to Report"
}
