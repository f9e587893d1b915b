// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestLibrary(t *testing.T) {
	cases := map[string]struct {
		to     string
		broken bool
		want   string
		reason Reason
	}{
		"converts":        {to: "v1", want: converted + "\n"},
		"refuses":         {to: "v2", reason: ReasonUnexpectedAnswer},
		"does not listen": {to: "v1", broken: true, reason: ReasonUnreachable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, converter)
			address := p.target.Address
			if c.broken {
				address = "127.0.0.1:1"
			}
			library, err := NewLibrary(libraryDefinition(name), libraryConversion(p), []string{address})
			expect.NoError(t, err)
			got, err := library.Convert(nil, []byte(original), c.to)
			var failed *Error
			if errors.As(err, &failed) && failed.Reason != c.reason || failed == nil && c.reason != "" {
				t.Errorf("error is %v, want the reason %q", err, c.reason)
			}
			expect.Equal(t, "object", decodedOrNil(t, c.want), decodedOrNil(t, string(got)))
		})
	}
}

// TestLibraryTakesTurns checks that the calls alternate between the pods.
func TestLibraryTakesTurns(t *testing.T) {
	one, two := newPod(t, converter), newPod(t, converter)
	two.target.CABundle = nil // its certificate is from another authority, which is not trusted
	library, err := NewLibrary(libraryDefinition("turns"), libraryConversion(one), []string{one.target.Address, two.target.Address})
	expect.NoError(t, err)
	failures := 0
	for range 4 {
		if _, err := library.Convert(nil, []byte(original), "v1"); err != nil {
			failures++
		}
	}
	expect.Equal(t, "calls that went to the pod that is not trusted", 2, failures)
}

func TestLibraryWithoutPods(t *testing.T) {
	p := newPod(t, converter)
	if _, err := NewLibrary(libraryDefinition("none"), libraryConversion(p), nil); err == nil {
		t.Error("there is a converter where there are no pods")
	}
}

func decodedOrNil(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	return expect.JSON(t, text)
}

// libraryDefinition needs a unique name, because the library has metrics by name.
func libraryDefinition(name string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(name, " ", "-")}}
	crd.Spec.Group = "example.com"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1"}, {Name: "v1"}, {Name: "v2"}}
	return crd
}

func libraryConversion(p *pod) *apiextensionsv1.CustomResourceConversion {
	service := &apiextensionsv1.ServiceReference{Namespace: "conversion-system", Name: "crontabs", Path: new("/convert/abc"), Port: new(int32(443))}
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: p.target.CABundle, Service: service},
	}}
}
