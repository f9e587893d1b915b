// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// NotOwnedByAnother is a gate: no other client owns spec.conversion.
func (a *Activation) NotOwnedByAnother() gate.Decision { return a.work.Decide(a.notOwned()) }

// notOwned stops a policy while another client converts this CustomResourceDefinition, or
// writes its caBundle. Two writers would make every API server rebuild the storage of the
// kind, in turn and for ever. drift.go handles writes of other clients after the activation.
func (a *Activation) notOwned() gate.Outcome {
	if generated := a.generated(); generated.Stop {
		return generated
	}
	if annotation := crds.Injector(a.CRD); annotation != "" && !a.Drifted() && !a.Injected() {
		return gate.Stalled(v1alpha1.ReasonForeignConversion, fmt.Sprintf(
			"the annotation %s on the CustomResourceDefinition makes another client write caBundle: remove the annotation, or set spec.certificates to the type Injected in the policy", annotation))
	}
	adopted := a.converter.Adopts() || a.exported()
	if crds.Strategy(a.CRD) == apiextensionsv1.WebhookConverter && !a.converter.Active && !a.Drifted() && !adopted {
		return gate.Stalled(v1alpha1.ReasonForeignConversion, fmt.Sprintf(
			"the CustomResourceDefinition already converts through %s: remove spec.conversion there, or delete this policy", observed.WebhookOf(a.CRD)))
	}
	return gate.Outcome{}
}

// exported reports that a converter which a project ships for clusters without the operator has the CustomResourceDefinition,
// and that the policy takes over with rules of its own. That converter runs on, so that no call fails meanwhile.
func (a *Activation) exported() bool {
	service := observed.WebhookService(a.CRD)
	return service != nil && a.converter.Rulesets() && a.CRD.Annotations[names.ExportedAnnotation] == service.Namespace+"/"+service.Name
}

// NoDeadlock is a gate: the converter needs no objects of the kind that it is to convert.
func (a *Activation) NoDeadlock() gate.Decision { return a.work.Decide(a.noDeadlock()) }

// noDeadlock stops a policy before the activation if one outage of the converter would last for
// ever. An active converter continues, because objects may be unreadable without it: the condition
// BootstrapDependency warns of it. It also warns if a deadlock is only possible.
func (a *Activation) noDeadlock() gate.Outcome {
	if a.None() || a.converter.EverActive {
		return gate.Outcome{}
	}
	fleet := a.converter.Fleet()
	if !a.IssuesItself(fleet) {
		return gate.Outcome{}
	}
	remedy := "set spec.certificates to {type: SelfManaged}"
	if fleet != "" {
		remedy = fmt.Sprintf("set spec.workload to {type: Dedicated}, or name a fleet with certificates of type SelfManaged in spec.workload.fleet instead of ConverterFleet %s", fleet)
	}
	return gate.Stalled(v1alpha1.ReasonNeededToStart,
		"cert-manager reads objects of this kind to renew the certificate of the converter, and API servers could not convert them after the certificate expired: "+remedy)
}
