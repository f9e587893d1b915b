// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// cleanUp deletes rights that nothing uses, and objects of the previous converter and of
// the previous source of certificates.
func (p *planner) cleanUp() {
	if !p.deletion.EndsRuns() {
		asking := p.Samples.InProgress() || p.Written.InProgress() || p.Resampled.InProgress() || p.activation.CountsNext()
		// Writes are counted right after the activation, for which samples were taken before it.
		activates := p.Samples != nil && apimeta.IsStatusConditionTrue(p.status.Conditions, v1alpha1.ReconcilingCondition)
		if p.ReadRights && !asking && !activates && !wants[step.TakeSamples](p) && !wants[step.CountWrites](p) {
			p.Do(rights.Withdraw(p.Cluster, names.ReadRights(p.Policy.Name)))
		}
		if p.CleanRights && !p.retirement.CleansManagedFields {
			p.Do(rights.Withdraw(p.Cluster, names.CleanRights(p.Policy.Name))) // which also stops a cleaning that is under way
		}
	}
	if !p.changedOver() {
		return
	}
	for _, name := range p.Leftovers {
		p.Do(step.DeleteSecret{Name: name})
	}
	if p.activation.AdmissionLeft() {
		p.Do(step.DeleteAdmission{Name: p.Admission.Name})
	}
}

// changedOver reports that only the policy's current converter and source of certificates are
// in use, and that the propagation delay after the change is over.
func (p *planner) changedOver() bool {
	switch {
	case p.CRD == nil || p.Policy.Spec.Paused || p.converter.Drifted || p.writesCRD() || p.IsDeleted():
		return false
	case slices.ContainsFunc(p.converter.Status.Active, func(active v1alpha1.ActiveRevision) bool { return active.ReplacedTime != nil }):
		return false
	case !p.Deploys() && len(p.PodsOf(""))+len(p.EndingOf("")) > 0:
		return false
	case p.None():
		return p.Unconverted()
	}
	return p.converter.InCharge() && p.certificates.ChangedOver()
}
