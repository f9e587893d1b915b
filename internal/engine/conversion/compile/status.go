// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// exposedStatus returns the fields below .status that are preserved in an annotation while the object is at a version, by the
// versions whose clients can write that. API servers ignore .status in writes of the object, and annotations in writes of the
// status: the annotation bypasses that separation.
func exposedStatus(crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict) map[string][]string {
	exposed := map[string][]string{}
	for _, leaf := range leaves {
		at := hub
		if leaf.Version == hub {
			at = leaf.Spoke
		}
		// No client can write at a version that is not served. Objects at the hub reach other spokes, whether it is served or not.
		if name := preservedStatus(leaf); name != "" && (at == hub || isServed(crd, at)) {
			exposed[at] = append(exposed[at], name)
		}
	}
	return exposed
}

// preservedStatus returns the name for messages of a leaf field below .status that is preserved or
// partly preserved. It is empty for all other leaves.
func preservedStatus(leaf FieldVerdict) string {
	path, err := conversion.ParsePath(leaf.Root)
	switch name := leaf.Version + ":" + leaf.Root; {
	case err != nil || path[0] != "status":
		return ""
	case leaf.Owner == OwnerPreserved:
		return name
	case leaf.Owner == OwnerExact && leaf.PartlyPreserved:
		return name + " (values that " + shortRule(leaf.Rule) + " cannot express)"
	}
	return ""
}

// warnStatus warns about fields below .status that are preserved.
func warnStatus(exposed map[string][]string) (warnings []string) {
	for _, version := range slices.Sorted(maps.Keys(exposed)) {
		warnings = append(warnings, fmt.Sprintf(
			"status preserved in an annotation of objects at %s: %s: every client that may update objects may change and delete these fields there, without the right to update status, and replacing an object at %s with an older manifest reverts or deletes them: give %s the same fields",
			version, few(exposed[version]), version, version))
	}
	return warnings
}

func isServed(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == name && v.Served
	})
}

// checkStatus returns an error for preserved status if the policy refuses it.
func checkStatus(action v1alpha1.PreservedStatusAction, exposed map[string][]string) field.ErrorList {
	if action != v1alpha1.PreservedStatusRefuse || len(exposed) == 0 {
		return nil
	}
	var messages []string
	for _, version := range slices.Sorted(maps.Keys(exposed)) {
		messages = append(messages, fmt.Sprintf("preserved at %s: %s: give %s the same fields", version, few(exposed[version]), version))
	}
	return field.ErrorList{field.Invalid(declarativePath.Child("preservedStatus"), action,
		strings.Join(messages, "; ")+"; or set preservedStatus to "+string(v1alpha1.PreservedStatusAllow))}
}
