// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// The budget of repairs. Each repair makes every API server rebuild the storage of the kind, and
// a writer that continues after these will not stop.
const (
	repairsAtMost = 5
	repairWindow  = 10 * time.Minute
)

// answerDrift decides what to do about a foreign write, and which converter to restore. A
// repair needs one ready pod, and no other gate: clients notice a conversion that fails,
// while strategy None silently serves and stores wrong data.
func (a *Activation) answerDrift() (answer v1alpha1.DriftAnswer, repair string) {
	identity := a.converter.Answerable()
	switch {
	case a.Policy.Spec.Drift == v1alpha1.DriftTolerate:
		return v1alpha1.DriftTolerated, ""
	case a.contested():
		return v1alpha1.DriftContested, ""
	case identity != "" && (a.usable(identity) || a.onlyAddsTrust(identity)):
		return v1alpha1.DriftRepaired, identity
	}
	return "", ""
}

// onlyAddsTrust reports that a repair changes nothing but caBundle, and adds authorities there. It
// does no harm without a certificate that pods can mount, and such a certificate waits for it: running
// pods may have another one in memory.
func (a *Activation) onlyAddsTrust(identity string) bool {
	return a.converter.Active && identity == a.converter.Named() && a.converter.AtWantedPlace(identity) && a.certificates.OnlyAddsTrust()
}

// contested reports that the operator has repaired spec.conversion too often, too
// recently. A change of the policy's spec starts the count again: its author has seen it.
func (a *Activation) contested() bool {
	drift := a.Status.Drift
	if drift == nil || len(drift.Repairs) < repairsAtMost {
		return false
	}
	repaired := drift.CRDGeneration == a.CRD.Generation && drift.Answer == v1alpha1.DriftRepaired
	return !repaired && a.Now.Before(drift.Repairs[0].Add(repairWindow))
}

// recordDrift counts each foreign write once, no matter how many attempts its answer takes.
func (a *Activation) recordDrift() {
	if a.answer == "" {
		return
	}
	before, answer := a.Status.Drift, a.answer
	if answer == v1alpha1.DriftContested {
		a.work.Recheck(before.Repairs[0].Add(repairWindow).Sub(a.Now))
	}
	if before != nil && before.CRDGeneration == a.CRD.Generation && before.Answer == answer &&
		a.Policy.Status.ObservedGeneration == a.Policy.Generation {
		return
	}
	now := *a.Second()
	manager, _ := a.converter.Author()
	drift := v1alpha1.DriftStatus{
		LastManager: manager, LastTime: now, CRDGeneration: a.CRD.Generation, Answer: answer,
	}
	if before != nil {
		drift.Repairs = slices.Clone(before.Repairs)
	}
	if answer == v1alpha1.DriftRepaired {
		drift.Repairs = append(drift.Repairs, now)
		drift.Repairs = drift.Repairs[max(0, len(drift.Repairs)-repairsAtMost):]
	}
	a.Status.Drift = &drift
	a.work.Do(step.RecordDrift{CRD: a.CRD.UID, Drift: drift, Note: a.note()})
}

// note is the text of the events.
func (a *Activation) note() string {
	if manager, object := a.converter.Author(); a.answer == v1alpha1.DriftKept {
		return gate.FieldManager(manager) + " wrote spec.conversion of " + object +
			", and it kept the operator's value, as keep-conversion does: the operator becomes its field manager again"
	}
	return a.notDrifted().Message
}

// NotDrifted is a gate: no other client has changed spec.conversion since it was activated.
func (a *Activation) NotDrifted() gate.Decision { return a.work.Decide(a.notDrifted()) }

// notDrifted reports a foreign write of spec.conversion, and the answer to it.
func (a *Activation) notDrifted() gate.Outcome {
	if !a.Drifted() {
		return gate.Outcome{}
	}
	switch a.answer {
	case "":
		return gate.Waiting(v1alpha1.ReasonDrifted, a.WhatDrifted()+": restoring it once the converter is ready")
	case v1alpha1.DriftTolerated:
		return gate.Stalled(v1alpha1.ReasonDrifted, a.WhatDrifted()+
			"; spec.drift is Tolerate, so the operator does not restore it: set spec.drift to Repair, or delete this policy if another converter takes over")
	case v1alpha1.DriftContested:
		return gate.Stalled(v1alpha1.ReasonContested, fmt.Sprintf(
			"%s, and the operator restored it %d times within %d minutes: %s; the operator restores it again after that time, or when the spec of this policy changes",
			a.WhatDrifted(), repairsAtMost, int(repairWindow.Minutes()), a.howToEndIt()))
	}
	restores := "restoring it"
	if a.Composite != nil && a.ConversionIsOurs() {
		restores = a.converter.Progress(restores)
	}
	return gate.Waiting(v1alpha1.ReasonDrifted, a.WhatDrifted()+": "+restores)
}

// WhatDrifted says which field manager changed spec.conversion, and how.
func (a *Activation) WhatDrifted() string {
	manager, object := a.converter.Author()
	who := gate.FieldManager(manager)
	switch {
	case crds.Strategy(a.CRD) == apiextensionsv1.NoneConverter:
		return who + " set spec.conversion of " + object + " to strategy None"
	case a.Copied() && a.ConversionIsOurs():
		return "another installation of this operator pointed spec.conversion of " + object + " at " + observed.WebhookOf(a.CRD)
	case !a.converter.Active:
		return who + " pointed spec.conversion of " + object + " at " + observed.WebhookOf(a.CRD)
	case !bytes.Equal(a.certificates.Bundle(), a.CABundle()):
		return who + " changed caBundle in spec.conversion of " + object
	}
	return who + " changed spec.conversion of " + object
}

// howToEndIt says how users can stop two writers that revert each other.
func (a *Activation) howToEndIt() string {
	if annotation := crds.Injector(a.CRD); annotation != "" {
		return "remove the annotation " + annotation + " from the CustomResourceDefinition"
	}
	omit := "make that writer omit spec.conversion"
	switch writer := crds.WriterOf(a.CRD); {
	case a.Composite != nil && a.Composite.ByPackage() != "":
		omit = a.Composite.ByPackage() + " replaces the CompositeResourceDefinition as a whole: install config/components/keep-conversion"
	case writer != nil && a.Composite == nil:
		omit = writer.Tool + " writes the CustomResourceDefinition: remove spec.conversion from " + writer.Change +
			", or install config/components/keep-conversion"
	}
	return omit + ", or set spec.drift to Tolerate"
}
