// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
)

func from[T any](t testing.TB, text string) *T {
	t.Helper()
	return kindtest.From[T](t, text)
}

func widgets(t testing.TB, versions map[string]string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return kindtest.Widgets(t, versions)
}

// between compiles rules between the spoke v1 and the hub v2.
func between(t testing.TB, v1, v2, rules string) Result {
	t.Helper()
	return Compile(widgets(t, map[string]string{"v1": v1, "v2": v2}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1, rules: ["+rules+"]}]}"))
}

// converterOf fails the test if Compile refused the rules.
func converterOf(t testing.TB, result Result) {
	t.Helper()
	if len(result.Errors) > 0 || result.Ruleset == nil {
		t.Fatalf("the rules are refused: %v, missing: %v", result.Errors, result.Missing)
	}
	kindtest.Converter(t, result.Ruleset)
}
