// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"net/url"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Library converts through converter pods with the code of API servers, so that all their checks
// apply. It uses the pods in turn.
type Library struct {
	converters []runtime.ObjectConvertor
	group      string
	calls      atomic.Uint64
}

// NewLibrary returns a Library for a CustomResourceDefinition with the desired spec.conversion.
// Calls go to the addresses of pods, with their ports, instead of the Service. If the conversion
// has a URL instead of a Service, the addresses are ignored.
func NewLibrary(crd *apiextensionsv1.CustomResourceDefinition, wanted *apiextensionsv1.CustomResourceConversion, addresses []string) (*Library, error) {
	crd = crd.DeepCopy()
	crd.Spec.Conversion = wanted
	l := &Library{group: crd.Spec.Group}
	if wanted.Webhook.ClientConfig.URL != nil {
		addresses = []string{""}
	}
	for _, address := range addresses {
		factory, err := conversion.NewCRConverterFactory(endpoint(address), asProbe)
		if err != nil {
			return nil, err
		}
		converter, _, err := factory.NewConverter(crd)
		if err != nil {
			return nil, fmt.Errorf("spec.conversion is not one that an API server could use: %w", err)
		}
		l.converters = append(l.converters, converter)
	}
	if len(l.converters) == 0 {
		return nil, fmt.Errorf("no converter pod is ready")
	}
	return l, nil
}

// Convert converts an object to a version, and appends it to dst. The error is an *Error with the
// message of an API server. Its reason is ReasonUnexpectedAnswer if a converter answered but did
// not convert.
func (l *Library) Convert(dst, object []byte, toVersion string) ([]byte, error) {
	in := &unstructured.Unstructured{}
	if err := in.UnmarshalJSON(object); err != nil {
		return dst, err
	}
	next := l.converters[l.calls.Add(1)%uint64(len(l.converters))]
	out, err := next.ConvertToVersion(in, schema.GroupVersion{Group: l.group, Version: toVersion})
	if err != nil {
		reason, text, _ := CauseOf(err)
		return dst, failf(reason, "%s", text)
	}
	text, err := out.(*unstructured.Unstructured).MarshalJSON() //nolint:forcetypeassert // the result for an object has the same type
	return append(dst, text...), err
}

// endpoint resolves every Service to one address.
type endpoint string

// ResolveEndpoint implements the ServiceResolver of k8s.io/apiserver/pkg/util/webhook.
func (e endpoint) ResolveEndpoint(string, string, int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: string(e)}, nil
}
