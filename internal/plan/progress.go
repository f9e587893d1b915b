// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// OnlyProgress reports that two states of a policy are both on the way to Ready, and differ only in how
// far the policy has come. Such a status may be written later, or never: Ready stays False, and nothing
// in the difference is needed for a decision. The results of checks are also in the memory of the
// manager, and another manager repeats the checks.
func OnlyProgress(before, after v1alpha1.ConversionPolicyStatus) bool {
	return onTheWay(before) && onTheWay(after) && equality.Semantic.DeepEqual(withoutProgress(before), withoutProgress(after))
}

func onTheWay(status v1alpha1.ConversionPolicyStatus) bool {
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionFalse && slices.Contains(passing, ready.Reason)
}

// withoutProgress has what must be written at once. A condition of a problem is part of it.
func withoutProgress(status v1alpha1.ConversionPolicyStatus) v1alpha1.ConversionPolicyStatus {
	status.Verification, status.Webhook, status.PreservedData = nil, nil, nil
	status.Versions, status.Removable = nil, ""
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(condition metav1.Condition) bool {
		return !slices.Contains(v1alpha1.Abnormal, condition.Type)
	})
	return status
}
