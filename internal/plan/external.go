// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// externalAgain is when to look again at a converter that somebody else runs: no
// event tells what becomes of it.
const externalAgain = 30 * time.Second

// External is a converter that somebody else runs.
type External struct {
	// Reason is why it cannot be called, a condition reason; empty where it can be.
	Reason string
	// Message names the cause.
	Message string
	// Endpoints are what answers for it: those of a Service, or the host of a URL.
	Endpoints []Pod
}

// external tells that somebody else runs the converter.
func (s *state) external() bool {
	return s.Policy.Spec.Converter.Service != nil || s.Policy.Spec.Converter.URL != nil
}

// externalClient is how API servers call the converter, but for caBundle.
func (s *state) externalClient() *apiextensionsv1.WebhookClientConfig {
	if service := s.Policy.Spec.Converter.Service; service != nil {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
			Namespace: service.Namespace, Name: service.Name, Path: new(string(service.Path)), Port: new(service.Port)}}
	}
	return &apiextensionsv1.WebhookClientConfig{URL: new(s.Policy.Spec.Converter.URL.URL)}
}

func (s *state) externalVersions() []string {
	if service := s.Policy.Spec.Converter.Service; service != nil {
		return reviewVersions(service.ConversionReviewVersions)
	}
	return reviewVersions(s.Policy.Spec.Converter.URL.ConversionReviewVersions)
}

func reviewVersions(versions []v1alpha1.ReviewVersion) []string {
	names := make([]string, 0, len(versions))
	for _, version := range versions {
		names = append(names, string(version))
	}
	return names
}

// identityOf is that of a converter that somebody else runs: where it is. What the
// API server fills in makes no difference.
func identityOf(client *apiextensionsv1.WebhookClientConfig) string {
	var where any = ptr.Deref(client.URL, "")
	if service := client.Service; service != nil {
		where = []any{service.Namespace, service.Name, ptr.Deref(service.Path, ""), ptr.Deref(service.Port, servicePort)}
	}
	text, _ := json.Marshal(where) // cannot fail, of strings and a number
	return hash(string(text))[:identityLength]
}

// ExternalServerName is the name that API servers verify of a converter that
// somebody else runs; empty for one that the operator runs.
func ExternalServerName(converter v1alpha1.Converter) string {
	if service := converter.Service; service != nil {
		return service.Name + "." + service.Namespace + ".svc"
	}
	if converter.URL == nil {
		return ""
	}
	parsed, err := url.Parse(converter.URL.URL)
	if err != nil {
		return "" // the CustomResourceDefinition's pattern lets no such URL pass
	}
	return parsed.Hostname()
}

// externalAvailable: there is something to call.
func (s *state) externalAvailable() outcome {
	s.dropUnused()
	s.recheck(externalAgain)
	var ready int32
	for _, endpoint := range s.External.Endpoints {
		if endpoint.Ready {
			ready++
		}
	}
	s.plan.Status.Webhook = &v1alpha1.WebhookStatus{
		Desired: int32(len(s.External.Endpoints)), Ready: ready, Available: fmt.Sprintf("%d/%d", ready, len(s.External.Endpoints))} //nolint:gosec // a Service has not that many endpoints
	switch {
	case s.External.Reason != "":
		s.recheck(probeAgain)
		return waiting(s.External.Reason, s.External.Message+s.meanwhile())
	case ready == 0:
		s.recheck(probeAgain)
		return waiting(v1alpha1.ReasonWaitingForEndpoints, s.where()+" has no ready endpoint: see the pods that it selects"+s.meanwhile())
	}
	if s.Policy.Spec.Converter.URL != nil {
		return passed(v1alpha1.ReasonExternal, s.where()+" is outside the cluster: whether it answers is what the next gate asks")
	}
	return passed(v1alpha1.ReasonExternal, fmt.Sprintf("%s has %d ready endpoints", s.where(), ready))
}
