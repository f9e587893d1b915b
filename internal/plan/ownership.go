// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// notOwnedByAnother: nobody else converts, or writes caBundle, for this
// CustomResourceDefinition. Two writers would each rebuild its storage on every
// API server, in turn and for ever. Who comes after this policy is drift's
// business (drift.go).
func notOwnedByAnother(s *state) outcome {
	if annotation := crds.Injector(s.CRD); annotation != "" && !s.drifted && !s.injected() {
		return stalled(v1alpha1.ReasonForeignInjector, fmt.Sprintf(
			"the annotation %s on the CustomResourceDefinition makes somebody else write caBundle: remove the annotation, or set spec.certificates.injected in the policy", annotation))
	}
	if crds.Strategy(s.CRD) == apiextensionsv1.WebhookConverter && !s.armed && !s.drifted {
		return stalled(v1alpha1.ReasonForeignWebhook, fmt.Sprintf(
			"the CustomResourceDefinition already converts through %s: remove spec.conversion there, or delete this policy", s.foreignWebhook()))
	}
	return outcome{}
}

// pointsHere reports whether the CustomResourceDefinition converts through this policy's Service.
func (s *state) pointsHere() bool {
	service := webhookService(s.CRD)
	return service != nil && service.Namespace == s.Settings.Namespace && service.Name == ChildName(s.Policy.Name)
}

func (s *state) foreignWebhook() string {
	if service := webhookService(s.CRD); service != nil {
		return "the Service " + service.Namespace + "/" + service.Name
	}
	return "another webhook"
}

func webhookService(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.ServiceReference {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig.Service
}
