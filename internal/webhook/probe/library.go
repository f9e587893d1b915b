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

// Library converts through converter pods with the code of the API server itself,
// so that all that it asks of an answer applies. The pods take turns.
type Library struct {
	converters []runtime.ObjectConvertor
	group      string
	calls      atomic.Uint64
}

// NewLibrary makes a Library of a CustomResourceDefinition with the spec.conversion
// that it is to be given. Addresses are those of the pods, with their ports; calls
// go there and not to the Service. If a URL is called instead of a Service,
// there are no pods and no addresses.
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

// Convert appends an object, converted to a version, to dst. The error is an
// *Error with what an API server would show. Its reason is ReasonUnexpectedAnswer
// where a converter answered, and did not convert.
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
	text, err := out.(*unstructured.Unstructured).MarshalJSON() //nolint:forcetypeassert // it converts objects, not lists, to the same type
	return append(dst, text...), err
}

// endpoint resolves every Service to one address.
type endpoint string

// ResolveEndpoint implements the ServiceResolver of k8s.io/apiserver/pkg/util/webhook.
func (e endpoint) ResolveEndpoint(string, string, int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: string(e)}, nil
}
