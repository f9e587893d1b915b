// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestCompare(t *testing.T) {
	rendering := func(source, crd string) Rendering {
		return Rendering{Source: source, CRDs: []*apiextensionsv1.CustomResourceDefinition{definition(t, crd)}}
	}
	without := "versions: {v1 served storage: {a: string}}"
	for name, test := range map[string]struct {
		renderings []Rendering
		want       []string
	}{
		"one":               {[]Rendering{rendering("a", converts)}, nil},
		"equal ones":        {[]Rendering{rendering("a", converts), rendering("b", converts)}, nil},
		"without it":        {[]Rendering{rendering("a", converts), {Source: "b"}}, nil},
		"two in one folder": {[]Rendering{{Source: "a", CRDs: append(rendering("", converts).CRDs, rendering("", without).CRDs...)}, rendering("b", converts)}, nil},
		"without the webhook and a version": {[]Rendering{rendering("a", converts), rendering("b", without), rendering("c", converts)}, []string{
			"Warning Certain RenderingsDiffer -: a conversion webhook is in a, c, and not in b: there, API servers do not convert, and drop fields",
			"Warning Certain RenderingsDiffer v2: v2 is in a, c, and not in b: a change of the values removes it, which API servers refuse while objects may be stored in it, and its clients fail"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range Compare(test.renderings) {
				got = append(got, short(finding))
			}
			expect.Equal(t, "findings", test.want, got)
		})
	}
}

// TestServiceOfRendering: manifests without the Service that the webhook names, or without its port.
func TestServiceOfRendering(t *testing.T) {
	for name, test := range map[string]struct {
		services map[string]*Service
		want     string
	}{
		"only definitions": {nil, ""},
		"there":            {map[string]*Service{"svc": {Found: true, Ports: []int32{443}, Ready: -1}}, ""},
		"another port":     {map[string]*Service{"svc": {Found: true, Ports: []int32{8443}, Ready: -1}}, "Error Certain ServicePortMissing"},
		"another Service":  {map[string]*Service{"other": {Found: true, Ports: []int32{443}}}, "Warning Likely ServiceMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := definition(t, converts)
			rendering := Rendering{Services: test.services}
			var got []string
			for _, finding := range service(&Observed{CRD: crd, Service: rendering.Service(crd)}) {
				got = append(got, strings.Split(short(finding), " -: ")[0])
			}
			expect.Equal(t, "findings", test.want, strings.Join(got, "\n"))
		})
	}
}
