// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// bootstrapPage describes the order in which a cluster starts, and what to do about such kinds.
const bootstrapPage = "https://github.com/conversion-operator/conversion-operator/blob/main/api/docs/bootstrap.md#kinds-that-need-care"

// bootstrap reports kinds whose objects nodes or pods need in order to start. It depends on the
// version that a component requests, and on where a webhook runs, whether an outage is a deadlock.
// With one version in use, API servers call no webhook.
func bootstrap(o *Observed) []Finding {
	reader := crds.ReaderOf(o.CRD.Spec.Group)
	if reader == nil || len(crds.VersionsInUse(o.CRD)) < 2 || o.policyRulesOutDependency() {
		return nil
	}
	found := func(converts string) Finding {
		return o.certain(BootstrapDependency, "",
			fmt.Sprintf("%s reads objects of this kind %s%s: %s", reader.Name, reader.Need.Purpose(), converts, reader.Need.Outage()),
			fmt.Sprintf("make it request %s, migrate all objects, and stop serving the other versions; or run the converter where it does not need these objects: %s",
				crds.StorageVersion(o.CRD), bootstrapPage))
	}
	switch config := o.ClientConfig(); {
	case o.webhook() == nil:
		return []Finding{found("; if a webhook in the cluster is to convert them").as(SeverityNote, Possible)}
	case config != nil && config.Service != nil:
		return []Finding{found(", and a webhook in the cluster converts them").as(SeverityWarning, Possible)}
	}
	return nil // a webhook with a URL may run elsewhere
}

// policyRulesOutDependency reports that a ConversionPolicy has activated the conversion, and knows
// that its converter does not depend on these objects.
func (o *Observed) policyRulesOutDependency() bool {
	return o.Policy != nil && meta.IsStatusConditionTrue(o.Policy.Status.Conditions, v1alpha1.ConversionConfiguredCondition) &&
		!meta.IsStatusConditionTrue(o.Policy.Status.Conditions, v1alpha1.BootstrapDependencyCondition)
}
