// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// DefaultPort of a Service, if the definition names none.
const DefaultPort = 443

// service checks the Service between API servers and the webhook. A Service without
// any call so far will fail with the first object of another version.
func service(o *Observed) []Finding {
	config := o.ClientConfig()
	if o.Service == nil || config == nil || config.Service == nil {
		return nil
	}
	name := config.Service.Namespace + "/" + config.Service.Name
	port, breaks := ptr.Deref(config.Service.Port, DefaultPort), o.breaks()
	switch {
	case !o.Service.Found && !o.Live:
		return []Finding{o.certain(ServiceMissing, "", fmt.Sprintf("spec.conversion calls Service %s, which %s does not have: %s", name, o.Source, breaks),
			"render the Service with the same values as spec.conversion, or ignore this if another manifest has it").as(SeverityWarning, Likely)}
	case !o.Service.Found:
		return []Finding{o.certain(ServiceMissing, "", fmt.Sprintf("spec.conversion calls Service %s, which does not exist: %s", name, breaks),
			"install the converter again, or point spec.conversion at another one. Set strategy None only if nothing is lost")}
	case o.Service.ExternalName != "":
		return []Finding{o.certain(ServicePortMissing, "", fmt.Sprintf("Service %s is of type ExternalName, for %s, which API servers do not call: %s", name, o.Service.ExternalName, breaks),
			"use clientConfig.url for a webhook outside the cluster")}
	case !slices.Contains(o.Service.Ports, port):
		return []Finding{o.certain(ServicePortMissing, "", fmt.Sprintf("spec.conversion calls port %d of Service %s, which has %s: %s", port, name, list(o.Service.Ports), breaks),
			"correct clientConfig.service.port, or the Service")}
	case o.Service.Ready == 0:
		return []Finding{o.certain(ServiceWithoutEndpoints, "", fmt.Sprintf("no pod behind Service %s is ready: %s", name, breaks),
			fmt.Sprintf("see why: kubectl -n %s get endpointslices,pods; compare the Service's selector with the pods' labels", config.Service.Namespace))}
	}
	return nil
}

// breaks says how a webhook that does not answer affects objects.
func (o *Observed) breaks() string {
	if len(crds.VersionsInUse(o.CRD)) > 1 {
		return "objects that are stored in one version cannot be read or written at another"
	}
	return "with one version there is no conversion yet; objects of a second version cannot be read"
}

func list(ports []int32) string {
	if len(ports) == 0 {
		return "none"
	}
	var names []string
	for _, port := range ports {
		names = append(names, fmt.Sprint(port))
	}
	return few(names)
}

// reviewVersions reports a webhook that accepts only v1beta1, which API servers will stop sending.
func reviewVersions(o *Observed) []Finding {
	webhook := o.webhook()
	if webhook == nil || slices.Contains(webhook.ConversionReviewVersions, apiextensionsv1.SchemeGroupVersion.Version) {
		return nil
	}
	return []Finding{o.certain(ReviewVersionOld, "",
		fmt.Sprintf("conversionReviewVersions has %s, and not v1: these are versions of ConversionReview, not of this kind, and future API servers send only v1", few(webhook.ConversionReviewVersions)),
		"list v1, once the converter accepts ConversionReview v1")}
}
