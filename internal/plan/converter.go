// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// What converts has an identity, the hash by which carried.go knows it: that of
// the compiled rules (workload.go), of the pods of an image (image.go), or of
// where a converter is that somebody else runs (external.go). The webhook that
// the CustomResourceDefinition names tells which one it is: rules by their path,
// images by their port, and others by all of it.

// choose makes the policy's converter the wanted one. There is none where the
// policy cannot be followed, or nothing converts.
func (s *state) choose() {
	converter := s.Policy.Spec.Converter
	switch {
	case s.CRD == nil:
	case converter.Declarative != nil && s.Rules.Plan != nil:
		s.usePlan(s.Rules.Plan)
	case converter.Image != nil:
		s.useImage()
	case s.external():
		s.planHash = identityOf(s.externalClient())
	}
}

// deploys tells that the operator runs the converter.
func (s *state) deploys() bool {
	return s.Policy.Spec.Converter.Declarative != nil || s.Policy.Spec.Converter.Image != nil
}

// none tells that nothing is to convert.
func (s *state) none() bool { return s.Policy.Spec.Converter.None != nil }

// unconverted tells that nothing converts.
func (s *state) unconverted() bool { return crds.Strategy(s.CRD) == apiextensionsv1.NoneConverter }

// inForce tells that the CustomResourceDefinition converts as the policy wants it,
// or by what the policy wanted before.
func (s *state) inForce() bool { return s.armed || s.none() && s.unconverted() }

// ours tells that the CustomResourceDefinition names a converter of this policy:
// the operator's own Service, or one that the policy names, or named.
func (s *state) ours() bool {
	if crds.Strategy(s.CRD) != apiextensionsv1.WebhookConverter {
		return false
	}
	if s.pointsHere() {
		return true
	}
	named := s.named()
	return s.external() && named == s.planHash ||
		slices.ContainsFunc(s.Policy.Status.ArmedPlans, func(armed v1alpha1.ArmedPlan) bool { return armed.Hash == named })
}

// adopts tells that the CustomResourceDefinition names the converter that the policy
// names, and somebody else wrote that, with another caBundle perhaps: it is taken
// over when it is proven, and not before.
func (s *state) adopts() bool {
	return s.Policy.Status.ArmedCRD != s.CRD.UID && !s.pointsHere() && !crds.ConversionIsBy(s.CRD, ManagedBy) && !s.convertsAsWanted()
}

// answerers are the pods, or endpoints, that serve the certificate.
func (s *state) answerers() []Pod {
	if s.external() {
		return s.External.Endpoints
	}
	return s.Pods
}

// named is the identity of the converter that the CustomResourceDefinition names,
// or empty.
func (s *state) named() string {
	if crds.Strategy(s.CRD) != apiextensionsv1.WebhookConverter {
		return ""
	}
	if !s.pointsHere() {
		return identityOf(s.CRD.Spec.Conversion.Webhook.ClientConfig)
	}
	port := ptr.Deref(webhookService(s.CRD).Port, servicePort)
	for _, stored := range s.Plans {
		if stored.Image != nil && stored.Image.Port == port {
			return stored.Hash
		}
	}
	return namedPlan(s.CRD)
}

// notNeeded is what gates say that have nothing to decide.
func (s *state) notNeeded() outcome {
	return passed(v1alpha1.ReasonNotNeeded, "spec.converter.none converts nothing")
}

// ownConverter: there is nothing to compile; what the converter does with fields
// is its author's business, and what it answers is proven.
func (s *state) ownConverter() outcome {
	if s.CRD.Spec.PreserveUnknownFields {
		return stalled(v1alpha1.ReasonPreserveUnknownFields,
			"the CustomResourceDefinition has spec.preserveUnknownFields: true, and the API server converts no objects of unknown structure: "+
				"set it to false, and give each version a structural schema")
	}
	s.plan.Status.Plan = nil
	if image := s.Policy.Spec.Converter.Image; image != nil {
		s.plan.Status.Plan = &v1alpha1.PlanStatus{Hash: s.planHash}
		return passed(v1alpha1.ReasonOwnConverter, "the converter is image "+image.Image)
	}
	return passed(v1alpha1.ReasonOwnConverter, "the converter is "+s.where())
}

// where names a converter that somebody else runs.
func (s *state) where() string {
	if service := s.Policy.Spec.Converter.Service; service != nil {
		return fmt.Sprintf("Service %s/%s", service.Namespace, service.Name)
	}
	return s.Policy.Spec.Converter.URL.URL
}

// dropUnused deletes what no API server asks for any more, and no pod needs.
func (s *state) dropUnused() {
	rules := s.Policy.Spec.Converter.Declarative != nil
	for _, stored := range s.Plans {
		carried := slices.Contains(s.carried, stored.Hash)
		used := slices.ContainsFunc(s.Pods, func(pod Pod) bool { return slices.Contains(pod.Plans, stored.Hash) })
		switch {
		case stored.Image != nil && !carried:
			s.do(DeleteDeployment{ImageName(s.Policy.Name, stored.Hash)})
		case stored.Image == nil && !carried && !used:
			s.do(DeletePlan{PlanName(s.Policy.Name, stored.Hash)})
		}
		rules = rules || stored.Image == nil && carried
	}
	if s.Deployed && !rules {
		s.do(DeleteDeployment{ChildName(s.Policy.Name)})
	}
	if s.Exposed && !s.deploys() && !slices.ContainsFunc(s.Plans, func(stored StoredPlan) bool { return slices.Contains(s.carried, stored.Hash) }) {
		s.do(DeleteService{ChildName(s.Policy.Name)})
	}
}
