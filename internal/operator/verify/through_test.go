// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestLoss converts an object with converters that make mistakes.
func TestLoss(t *testing.T) {
	directory := filepath.Join("testdata", "nothing-lost")
	crd := from[apiextensionsv1.CustomResourceDefinition](t, directory, "crd.yaml")
	policy := from[v1alpha1.ConversionPolicy](t, directory, "policy.yaml")
	rules := compile.Compile(crd, policy.Spec.Converter.Declarative)
	good, err := conversion.NewConverter(rules.Ruleset)
	expect.NoError(t, err)
	replacing := func(old, by string) Convert {
		return func(dst, object []byte, to string) ([]byte, error) {
			out, err := good.Convert(dst, object, to)
			return []byte(strings.Replace(string(out), old, by, 1)), err
		}
	}
	type loss struct {
		Kind           Kind
		From, To, Path string
	}
	cases := map[string]struct {
		rules   compile.Result
		convert Convert
		want    loss
	}{
		"none":                {rules, good.Convert, loss{}},
		"none, without rules": {compile.Result{}, good.Convert, loss{}},
		"a value":             {rules, replacing(`"host":"a"`, `"host":"b"`), loss{Lost, "v1beta1", "v1", ".hostPort"}},
		"an added field":      {rules, replacing(`"host":"a"`, `"host":"a","more":1`), loss{Pruned, "v1beta1", "v1", ".more"}},
		"refused": {rules, func([]byte, []byte, string) ([]byte, error) { return nil, errors.New("no") },
			loss{NotConverted, "v1beta1", "v1", ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			checker, err := NewThrough(crd, c.rules, c.convert)
			expect.NoError(t, err)
			checker.Check(t.Context(), crontab("v1beta1", "one", `},"hostPort":"a:1"`))
			var got loss
			if found := checker.Loss(); found != nil {
				got = loss{found.Kind, found.From, found.To, found.Path}
			}
			expect.Equal(t, "loss", c.want, got)
		})
	}
}
