// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

const (
	// AdmitPath is where converter pods answer AdmissionReviews: the hash of a plan
	// follows it.
	AdmitPath = "/admit"
	// admissionTimeout bounds how long a write waits for a converter pod, in seconds.
	// The conversion of an object of 1 MB takes less than a tenth of one.
	admissionTimeout = 5
	// admissionSuffix ends the names of webhooks.
	admissionSuffix = ".size.conversion-operator.io"
	// admissionPrefix begins the names of webhook configurations.
	admissionPrefix = "conversion-operator-"
	// admissionDelay is how long API servers may take to see a webhook configuration.
	// They watch them all.
	admissionDelay = 10 * time.Second
	// sinceAnnotation is when the webhooks of a configuration were written.
	sinceAnnotation = "conversion-operator.io/since"
)

// AdmissionName names the webhook configuration of a policy. It is cluster-scoped.
func AdmissionName(policy string) string { return admissionPrefix + ChildName(policy) }

// AdmissionClient is where the ruleset of a hash answers AdmissionReviews.
type AdmissionClient struct {
	Hash   string
	Client admissionregistrationv1.WebhookClientConfig
}

// AdmissionConfiguration makes API servers ask whether an object could be read as a
// whole at every version before they store it. Each ruleset that an API server may
// convert by is asked. Condition is a CEL expression: of objects for which it is
// false nobody is asked, so that a write of them does not depend on a converter.
//
// A write that cannot be decided is refused: what is stored shortened is lost.
func AdmissionConfiguration(policy string, crd *apiextensionsv1.CustomResourceDefinition, condition string, clients []AdmissionClient) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{
			Name: AdmissionName(policy), Labels: Labels(policy, ConverterComponent), Annotations: map[string]string{PolicyAnnotation: policy},
		},
	}
	for _, client := range clients {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:         client.Hash + admissionSuffix,
			ClientConfig: client.Client,
			Rules:        []admissionregistrationv1.RuleWithOperations{admissionRule(crd)},
			// With Equivalent an API server would convert before it asks: from the object as
			// it was written one sees what its conversion loses.
			MatchPolicy:             new(admissionregistrationv1.Exact),
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "may-be-too-large", Expression: condition}},
			NamespaceSelector:       &metav1.LabelSelector{},
			ObjectSelector:          &metav1.LabelSelector{},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(admissionTimeout)),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return configuration
}

// admissionRule is for the resource at all of its versions. An update of the status
// writes the whole object, which was read at the same version, and so does a deletion
// that waits for finalizers. A scale is an object of another kind.
func admissionRule(crd *apiextensionsv1.CustomResourceDefinition) admissionregistrationv1.RuleWithOperations {
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{crd.Spec.Group},
			Resources: []string{crd.Spec.Names.Plural, crd.Spec.Names.Plural + "/status"},
			Scope:     new(admissionregistrationv1.ScopeType(crd.Spec.Scope)),
		},
	}
	for i := range crd.Spec.Versions {
		rule.APIVersions = append(rule.APIVersions, crd.Spec.Versions[i].Name)
	}
	return rule
}

// limitsSize tells that API servers are to refuse what could be read in a shortened
// form only, and that conversions may therefore shorten.
func (s *state) limitsSize() bool {
	rules := s.Policy.Spec.Converter.Declarative
	return s.Settings.SizeAdmission && s.CRD != nil && rules != nil && rules.Overflow != v1alpha1.OverflowDrop && s.Rules.AdmissionCondition != ""
}

// shortening is what the wanted ruleset may shorten; nil where nothing is refused.
func (s *state) shortening() *conversion.Shortening {
	if !s.limitsSize() {
		return nil
	}
	allowed := &conversion.Shortening{Key: hash("shortening", string(s.Policy.UID), string(s.CRD.UID))}
	storage := crds.StorageVersion(s.CRD)
	for i := range s.CRD.Spec.Versions {
		// Who scales writes an object that admission does not see.
		if v := &s.CRD.Spec.Versions[i]; v.Name == storage && v.Subresources != nil && v.Subresources.Scale != nil {
			allowed.Except = []string{storage}
		}
	}
	return allowed
}

// refuseTooLarge makes API servers refuse what is too large for the wanted ruleset,
// and for those that they may still convert by. It says what is to be waited for
// before the CustomResourceDefinition names the wanted ruleset; empty for nothing.
func (s *state) refuseTooLarge() (waits string) {
	if !s.limitsSize() {
		return ""
	}
	wanted := s.admission()
	if s.Admission == nil || !equality.Semantic.DeepEqual(s.Admission.Webhooks, wanted.Webhooks) {
		wanted.Annotations[sinceAnnotation] = s.Now.UTC().Format(time.RFC3339)
		if object := AdmissionApply(wanted); object != nil {
			s.do(Apply{object})
		}
		s.recheck(admissionDelay)
		return "making API servers refuse objects that are too large to be converted"
	}
	since, err := time.Parse(time.RFC3339, s.Admission.Annotations[sinceAnnotation])
	if left := since.Add(admissionDelay).Sub(s.Now); err == nil && left > 0 {
		s.recheck(left)
		return "waiting until all API servers refuse objects that are too large to be converted"
	}
	return ""
}

// admission is the wanted webhook configuration.
func (s *state) admission() *admissionregistrationv1.ValidatingWebhookConfiguration {
	var clients []AdmissionClient
	for _, hash := range s.rules() {
		service := s.ownClient(AdmitPath+"/"+hash, servicePort).Service
		clients = append(clients, AdmissionClient{Hash: hash, Client: admissionregistrationv1.WebhookClientConfig{
			CABundle: s.caBundle(),
			Service: &admissionregistrationv1.ServiceReference{
				Namespace: service.Namespace, Name: service.Name, Path: service.Path, Port: service.Port,
			},
		}})
	}
	return AdmissionConfiguration(s.Policy.Name, s.CRD, s.Rules.AdmissionCondition, clients)
}

// AdmissionApply is a webhook configuration as it is applied.
func AdmissionApply(wanted *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration {
	text, err := json.Marshal(wanted)
	object := &admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration{}
	if err != nil || json.Unmarshal(text, object) != nil {
		return nil // cannot be: both are forms of the same
	}
	return object
}

// tidyAdmission takes the webhook configuration away, once no API server converts by
// a ruleset that shortens.
func (s *state) tidyAdmission() {
	if s.Admission != nil && !s.limitsSize() && s.changedOver() {
		s.do(DeleteAdmission{s.Admission.Name})
	}
}
