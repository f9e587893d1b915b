// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
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
	if err != nil || !writtenByCrossplane(crd, path) {
		return ""
	}
	return fmt.Sprintf("Crossplane writes %s, which is copied: leave it out of the rules, or give the field of your own another name in the CompositeResourceDefinition", path[:2])
}

// crossplaneFields are the fields of composite resources that Crossplane 2 adds to spec and status. A field of
// the XRD with such a name is replaced.
var crossplaneFields = map[string][]string{
	"spec": {
		"claimRef", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
		"compositionUpdatePolicy", "resourceRefs", "writeConnectionSecretToRef",
	},
	"status": {"claimConditionTypes", "conditions", "connectionDetails"},
}

// writtenByCrossplane reports that a path is in a field that Crossplane adds to each version. With a scope
// other than LegacyCluster, its fields are in an object crossplane, and the conditions in the status.
func writtenByCrossplane(crd *apiextensionsv1.CustomResourceDefinition, path []string) bool {
	if CompositeOf(crd) == nil || len(path) < 2 {
		return false
	}
	if isLegacy(crd) {
		return slices.Contains(crossplaneFields[path[0]], path[1])
	}
	return path[1] == "crossplane" && crossplaneFields[path[0]] != nil || path[0] == "status" && path[1] == "conditions"
}

// isLegacy reports that the XRD has the scope LegacyCluster, the only one with claims.
func isLegacy(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			return false
		}
		_, has := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["compositionRef"]
		return has
	})
}
