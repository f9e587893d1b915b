// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import "github.com/conversion-operator/conversion-operator/api/v1alpha1"

// reportRedundancy reports pods of the policy that are all on one node. A fleet reports its own.
func (h *Health) reportRedundancy() {
	decided := h.converter.Redundancy().Decide()
	h.report(v1alpha1.NotRedundantCondition, decided.Outcome)
	if !h.Policy.Spec.Suspend {
		h.work.Add(decided.Work)
	}
}
