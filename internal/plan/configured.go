// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// ConvertPath is where converter pods answer ConversionReviews: the hash of a
// plan follows it, and they answer by that plan. API servers keep objects
// of each served version in memory as they were converted, and write what
// clients send on top of those: after a change of the rules they would go on
// from what the rules of before had made. Another path is another spec, and
// makes them rebuild that memory.
const ConvertPath = "/convert"

// storageMigrating is set by Kubernetes' own StorageVersionMigration. It prunes
// status.storedVersions only while the generation stays the same.
const storageMigrating apiextensionsv1.CustomResourceDefinitionConditionType = "StorageMigrating"

// conversionConfigured: the CustomResourceDefinition converts through the
// converter pods. It is written only when it differs: every write of its spec
// makes every API server rebuild the storage of the kind.
func conversionConfigured(s *state) outcome {
	if !s.CRD.DeletionTimestamp.IsZero() {
		return unknown(v1alpha1.ReasonCRDTerminating,
			"the CustomResourceDefinition is being deleted, which needs its webhook: the converter stays until it is gone")
	}
	if s.none() {
		return s.strategyNone()
	}
	if waits := s.refuseTooLarge(); waits.stop {
		return waits
	}
	wanted := s.conversion(s.planHash)
	if s.isConfigured(wanted) {
		return passed(v1alpha1.ReasonConfigured, "the CustomResourceDefinition converts through "+webhookOf(s.CRD))
	}
	if !s.switched && crds.Condition(s.CRD, storageMigrating) {
		return waiting(v1alpha1.ReasonForeignStorageMigration,
			"a StorageVersionMigration of the CustomResourceDefinition is in flight: waits for its end before changing spec.conversion")
	}
	s.switchCRD(s.planHash)
	return waiting(v1alpha1.ReasonConfiguring, "switching the CustomResourceDefinition to the webhook")
}

// isConfigured reports that nothing is left to do but what a rotation does in its
// own time (rotation.go): to change what is trusted.
func (s *state) isConfigured(wanted *apiextensionsv1.CustomResourceConversion) bool {
	there := s.CRD.Spec.Conversion
	if s.trustsOtherThan(s.caBundle()) {
		there = there.DeepCopy()
		there.Webhook.ClientConfig.CABundle = s.caBundle()
	}
	return equality.Semantic.DeepEqual(there, wanted)
}

// switchCRD points the CustomResourceDefinition at the converter and a plan, once.
func (s *state) switchCRD(planHash string) {
	if !s.switched {
		s.switched = true
		// A repair does not wait for that, and comes after it.
		s.refuseTooLarge()
		s.do(SwitchCRD{Pin: s.pin(), Conversion: s.conversion(planHash)})
	}
}

// conversion is spec.conversion as it must be, with the bytes that were proven.
func (s *state) conversion(identity string) *apiextensionsv1.CustomResourceConversion {
	client, versions := s.ownClient(ConvertPath+"/"+identity, servicePort), []string{"v1"}
	if image := s.imageEndpoint(identity); image != nil {
		client, versions = s.ownClient(image.Path, image.Port), image.ConversionReviewVersions
	} else if s.external() && identity == s.planHash {
		client, versions = s.externalClient(), s.externalVersions()
	}
	client.CABundle = s.caBundle()
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: client, ConversionReviewVersions: versions},
	}
}

// ownClient is how API servers call converter pods.
func (s *state) ownClient(path string, port int32) *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: s.Settings.Namespace, Name: ChildName(s.Policy.Name), Path: new(path), Port: new(port),
	}}
}
