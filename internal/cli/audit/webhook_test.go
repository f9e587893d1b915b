// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
)

func TestService(t *testing.T) {
	bundle := authority(t, 365)
	behind := func(service *Service) func(*Observed) {
		return func(o *Observed) { o.ClientConfig().CABundle, o.Service = bundle, service }
	}
	const breaks = "objects that are stored in one version cannot be read or written at another"
	run(t, map[string]check{
		"not looked at":     {crd: converts, observe: behind(nil)},
		"ready":             {crd: converts, observe: behind(&Service{Found: true, Ports: []int32{443}, Ready: 2})},
		"nobody could tell": {crd: converts, observe: behind(&Service{Found: true, Ports: []int32{443}, Ready: -1})},
		"missing":           {crd: converts, observe: behind(&Service{}), want: []string{"Error Certain ServiceMissing -: spec.conversion calls Service ns/svc, which does not exist: " + breaks}},
		"missing, one version": {crd: strings.Replace(converts, ", v2 served: {b: string}", "", 1), observe: behind(&Service{}), want: []string{
			"Error Certain ServiceMissing -: spec.conversion calls Service ns/svc, which does not exist: with one version there is no conversion yet; objects of a second version cannot be read"}},
		"outside": {crd: converts, observe: behind(&Service{Found: true, ExternalName: "example.org"}), want: []string{
			"Error Certain ServicePortMissing -: Service ns/svc is of type ExternalName, for example.org, which API servers do not call: " + breaks}},
		"another port": {crd: converts, observe: behind(&Service{Found: true, Ports: []int32{80, 8443}, Ready: 1}), want: []string{
			"Error Certain ServicePortMissing -: spec.conversion calls port 443 of Service ns/svc, which has 80, 8443: " + breaks}},
		"the port that is named": {crd: strings.Replace(converts, "name: svc", "name: svc, port: 8443", 1), observe: behind(&Service{Found: true, Ports: []int32{8443}, Ready: 1})},
		"no ports": {crd: converts, observe: behind(&Service{Found: true, Ready: 1}), want: []string{
			"Error Certain ServicePortMissing -: spec.conversion calls port 443 of Service ns/svc, which has none: " + breaks}},
		"no pods": {crd: converts, observe: behind(&Service{Found: true, Ports: []int32{443}}), want: []string{
			"Error Certain ServiceWithoutEndpoints -: no pod behind Service ns/svc is ready: " + breaks}},
		"no pods of a URL": {crd: strings.Replace(converts, "service: {namespace: ns, name: svc}", "url: https://example.org", 1), observe: behind(&Service{})},
	})
}

func TestReviewVersions(t *testing.T) {
	reviews := func(versions string) string {
		return strings.Replace(converts, "conversionReviewVersions: [v1]", "conversionReviewVersions: "+versions, 1)
	}
	trusted := func(o *Observed) { o.ClientConfig().CABundle = authority(t, 365) }
	run(t, map[string]check{
		"both": {crd: reviews("[v1beta1, v1]"), observe: trusted},
		"old": {crd: reviews("[v1alpha1, v1beta1]"), observe: trusted, want: []string{
			"Warning Certain ReviewVersionOld -: conversionReviewVersions has v1alpha1, v1beta1, and not v1: these are versions of ConversionReview, not of this kind, and future API servers send only v1"}},
	})
}
