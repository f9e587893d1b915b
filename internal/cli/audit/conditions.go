// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// stuckAfter is how long the deletion of a definition may take: the API server deletes
// its objects first, and tries for a minute at a time.
const stuckAfter = 5 * time.Minute

const cureStructure = "fix the schema: without structure the API server prunes, defaults and validates nothing"

func (o *Observed) condition(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinitionCondition {
	if found := apihelpers.FindCRDCondition(o.CRD, kind); found != nil && found.Status == status {
		return found
	}
	return nil
}

// established reports names that are taken before anything else: then the definition is
// not served either, and the names are the cause.
func established(o *Observed) []Finding {
	if refused := o.condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse); refused != nil {
		return []Finding{o.certain(NamesNotAccepted, "", fmt.Sprintf("NamesAccepted is False (%s): %s", refused.Reason, refused.Message),
			"remove the other definition with these names, or choose other names")}
	}
	if refused := o.condition(apiextensionsv1.Established, apiextensionsv1.ConditionFalse); refused != nil {
		return []Finding{o.certain(NotEstablished, "", fmt.Sprintf("Established is False (%s): %s", refused.Reason, refused.Message),
			"fix what the message names; the API server serves no version until then")}
	}
	return nil
}

// structural reports preserveUnknownFields first: without pruning, no schema counts as structural.
func structural(o *Observed) []Finding {
	if o.CRD.Spec.PreserveUnknownFields {
		return []Finding{o.certain(PreservesUnknownFields, "",
			"spec.preserveUnknownFields is true: the API server stores unknown fields, and allows no conversion webhook",
			"give every version a structural schema, and set the field to false; the API server then prunes fields that a schema lacks")}
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
	why := "the API server gives no reason"
	if condition := o.condition(apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue); condition != nil {
		why = condition.Message
	}
	return []Finding{o.certain(TerminatingStuck, "", fmt.Sprintf("it has been terminating since %s: %s", day(o.CRD.DeletionTimestamp.Time), why),
		"check which objects remain and what their finalizers wait for; the deletion of objects in another stored version needs the conversion webhook")}
}

// deprecated finds versions that clients should leave. A deprecated storage version
// is worse, because the cluster cannot leave it without a migration.
func deprecated(o *Observed) []Finding {
	var found []Finding
	for _, version := range o.CRD.Spec.Versions {
		if !version.Served || !version.Deprecated {
			continue
		}
		warning := ""
		if version.DeprecationWarning != nil {
			warning = ": " + *version.DeprecationWarning
		}
		if version.Name == crds.StorageVersion(o.CRD) {
			found = append(found, o.certain(DeprecatedVersionServed, version.Name,
				fmt.Sprintf("%s is deprecated and is the storage version: the API server stores all objects in it%s", version.Name, warning),
				"make another version the storage version, and migrate").as(SeverityWarning, Certain))
			continue
		}
		found = append(found, o.certain(DeprecatedVersionServed, version.Name,
			fmt.Sprintf("%s is deprecated and still served%s", version.Name, warning),
			fmt.Sprintf("move clients and manifests to %s; the API server's metric apiserver_requested_deprecated_apis shows whether clients still request it", crds.StorageVersion(o.CRD))))
	}
	return found
}

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
