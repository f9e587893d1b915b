// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// defaultPort of a Service, where the definition names none.
const defaultPort = 443

// service looks at what stands between API servers and the webhook. One that
// nobody has asked yet is missed with the first object of another version.
func service(o *Observed) []Finding {
	config := o.clientConfig()
	if o.Service == nil || config == nil || config.Service == nil {
		return nil
	}
	name := config.Service.Namespace + "/" + config.Service.Name
	port := int32(defaultPort)
	if config.Service.Port != nil {
		port = *config.Service.Port
	}
	breaks := o.breaks()
	switch {
	case !o.Service.Found:
		return []Finding{o.certain(ServiceMissing, "", fmt.Sprintf("spec.conversion calls Service %s, which does not exist: %s", name, breaks),
			"install what converts again, or point spec.conversion at what does. Set strategy None only where nothing is lost by it")}
	case o.Service.ExternalName != "":
		return []Finding{o.certain(ServicePortMissing, "", fmt.Sprintf("Service %s is of type ExternalName, for %s: API servers call none such: %s", name, o.Service.ExternalName, breaks),
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

// breaks says what a webhook that does not answer does to objects.
func (o *Observed) breaks() string {
	if len(crds.VersionsInUse(o.CRD)) > 1 {
		return "objects that are stored in one version cannot be read or written at another"
	}
	return "with one version nothing is converted yet; what a second one brings cannot be read"
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

// reviewVersions: v1beta1 is the form of old converters, and will not be sent for ever.
func reviewVersions(o *Observed) []Finding {
	webhook := o.webhook()
	if webhook == nil || slices.Contains(webhook.ConversionReviewVersions, apiextensionsv1.SchemeGroupVersion.Version) {
		return nil
	}
	return []Finding{o.certain(ReviewVersionOld, "",
		fmt.Sprintf("conversionReviewVersions has %s, and not v1: these are versions of ConversionReview, not of this kind, and v1 is the one that API servers will go on sending", few(webhook.ConversionReviewVersions)),
		"list v1, once what converts takes ConversionReview v1")}
}
