// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func policy(o *Observed) []Finding {
	if o.Policy == nil {
		return nil
	}
	ready := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ReadyCondition)
	switch {
	case ready == nil:
		return []Finding{o.certain(PolicyNotReady, "", "its ConversionPolicy has no condition Ready yet", "check that the operator runs")}
	case ready.Status != metav1.ConditionTrue:
		return []Finding{o.certain(PolicyNotReady, "", fmt.Sprintf("its ConversionPolicy is not Ready (%s): %s", ready.Reason, ready.Message),
			"kubectl describe conversionpolicy "+o.name())}
	}
	return nil
}

func withoutDefinition(o *Observed) []Finding {
	return []Finding{o.certain(PolicyWithoutDefinition, "", "there is a ConversionPolicy of this name, but no CustomResourceDefinition",
		"apply the CustomResourceDefinition, or delete the policy")}
}
