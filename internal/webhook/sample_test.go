// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// newSample returns a handler for the policy of the sample crontab-cronspec, with the engine of
// converter pods.
func newSample(t testing.TB) *Handler {
	t.Helper()
	read := func(file string, into any) {
		text, err := os.ReadFile(filepath.Join("../../config/samples/crontab-cronspec", file))
		expect.NoError(t, err)
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	var crd apiextensionsv1.CustomResourceDefinition
	var policy v1alpha1.ConversionPolicy
	read("3-crd-both.yaml", &crd)
	read("2-policy.yaml", &policy)
	compiled := compile.Compile(&crd, policy.Spec.Converter.Declarative)
	if compiled.Ruleset == nil {
		t.Fatalf("the sample's rules are refused: %v", compiled.Errors)
	}
	converter, err := conversion.NewConverter(compiled.Ruleset)
	expect.NoError(t, err)
	rulesets := only(converter, compiled.Ruleset.Pairs()...)
	rulesets[0].Group = compiled.Ruleset.Group
	return NewHandler(rulesets, HandlerOptions{Log: logr.Discard()})
}

// sampleReview returns a review with count objects of about 10 KB, mostly managedFields, with a
// value that must be preserved.
func sampleReview(count int) []byte {
	const entry = `{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:cronSpec":{},"f:image":{},"f:replicas":{}}}}`
	object := `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"a","namespace":"b","uid":"c","managedFields":[` +
		strings.Repeat(entry+",", 90) + entry + `]},"spec":{"cronSpec":"*/5 9 * * 1","image":"i","replicas":1,"owner":"data team"}}`
	return []byte(v1Review(`{"uid":"3a1e8b1c-0b1e-4f0e-8f54-5f0f3f1b6b57","desiredAPIVersion":"stable.example.com/v2","objects":[` +
		strings.Repeat(object+",", count-1) + object + `]}`))
}

// begin returns the exchange of a call with the ruleset of tests.
func begin(t testing.TB, handler *Handler) *exchange {
	t.Helper()
	x := handler.newExchange(t.Context())
	if refused := x.selectRuleset("abc", ""); refused != nil {
		t.Fatal(refused)
	}
	return x
}
