// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
)

// An activation passes several states within a second. Each write of a status costs an API server as much
// as all other writes for a policy, and hundreds of policies may be created at once.

// progressPause is the time between two writes of a status that differ only in how far the policy has
// come.
const progressPause = 10 * time.Second

// progress has when the status of each policy was written last. It is in memory only.
type progress struct{ memory[string, time.Time] }

// pace leaves the status of a plan unchanged if it shows only progress, soon after the status was written,
// and has the policy reconciled again when it may be written.
func (p *progress) pace(policy string, before v1alpha1.ConversionPolicyStatus, decided plan.Plan, now time.Time) plan.Plan {
	if equality.Semantic.DeepEqual(before, decided.Status) {
		return decided
	}
	written, _ := p.get(policy)
	left := progressPause - now.Sub(written)
	if left > 0 && plan.OnlyProgress(before, decided.Status) {
		decided.Status = *before.DeepCopy()
		if decided.RecheckAfter == 0 || left < decided.RecheckAfter {
			decided.RecheckAfter = left
		}
		return decided
	}
	p.put(policy, now)
	return decided
}
