// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// CompileRules compiles rules for a CustomResourceDefinition, and refuses those for fields that Crossplane
// writes, at the same path of each version. It says so, too, if such a rule is wrong for another reason.
func CompileRules(crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) compile.Result {
	result := compile.Compile(crd, rules)
	for _, err := range result.Errors {
		if says := ofCrossplane(crd, fmt.Sprint(err.BadValue)); says != "" {
			err.Detail += "; " + says
		}
	}
	refused := map[string]bool{}
	for _, leaf := range result.Leaves {
		says := ofCrossplane(crd, leaf.Path)
		if leaf.Rule == "" || says == "" || refused[leaf.Rule] {
			continue
		}
		refused[leaf.Rule], result.Ruleset = true, nil
		result.Errors = append(result.Errors, field.Forbidden(field.NewPath(leaf.Rule), says))
	}
	return result
}

// ofCrossplane says that Crossplane writes the field at a path; it is empty if it does not.
func ofCrossplane(crd *apiextensionsv1.CustomResourceDefinition, text string) string {
	path, err := conversion.ParsePath(text)
	if err != nil || !crds.WrittenByCrossplane(crd, path) {
		return ""
	}
	return fmt.Sprintf("Crossplane writes %s, which is copied: leave it out of the rules, or give the field of your own another name in the CompositeResourceDefinition", path[:2])
}
