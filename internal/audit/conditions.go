// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// stuckAfter is how long a definition may take to go: the API server deletes its
// objects first, and tries for a minute at a time.
const stuckAfter = 5 * time.Minute

const cureStructure = "mend the schema: without structure nothing is pruned, defaulted or checked"

func (o *Observed) condition(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinitionCondition {
	i := slices.IndexFunc(o.CRD.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == kind && condition.Status == status
	})
	if i < 0 {
		return nil
	}
	return &o.CRD.Status.Conditions[i]
}

// established: names that are taken keep a definition from being served, too, and
// are the cause then.
func established(o *Observed) []Finding {
	if refused := o.condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse); refused != nil {
		return []Finding{o.certain(NamesNotAccepted, "", fmt.Sprintf("NamesAccepted is False (%s): %s", refused.Reason, refused.Message),
			"remove the definition that has the names, or choose others")}
	}
	if refused := o.condition(apiextensionsv1.Established, apiextensionsv1.ConditionFalse); refused != nil {
		return []Finding{o.certain(NotEstablished, "", fmt.Sprintf("Established is False (%s): %s", refused.Reason, refused.Message),
			"mend what the message names; no version is served until then")}
	}
	return nil
}

// structural: without pruning no schema counts as structural, whatever it says.
func structural(o *Observed) []Finding {
	if o.CRD.Spec.PreserveUnknownFields {
		return []Finding{o.certain(PreservesUnknownFields, "",
			"spec.preserveUnknownFields is true: fields that no schema knows are stored, and conversion webhooks are not allowed",
			"give every version a structural schema, and set it to false; fields that a schema does not name are pruned from then on")}
	}
	if violates := o.condition(apiextensionsv1.NonStructuralSchema, apiextensionsv1.ConditionTrue); violates != nil {
		return []Finding{o.certain(NonStructuralSchema, "", "NonStructuralSchema is True: "+violates.Message,
			cureStructure)}
	}
	return nil
}

func terminating(o *Observed) []Finding {
	if o.CRD.DeletionTimestamp == nil || o.Now.Sub(o.CRD.DeletionTimestamp.Time) < stuckAfter {
		return nil
	}
	why := "the API server does not say why"
	if condition := o.condition(apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue); condition != nil {
		why = condition.Message
	}
	return []Finding{o.certain(TerminatingStuck, "", fmt.Sprintf("it is being deleted since %s: %s", day(o.CRD.DeletionTimestamp.Time), why),
		"see which objects are left and what their finalizers wait for; objects that are stored in another version need their conversion webhook to go")}
}
