// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// statusExposure is a set of fields below .status that are preserved in an annotation while the
// object is at one version. API servers ignore .status in writes of the object, and annotations in
// writes of the status. The annotation bypasses that separation.
type statusExposure struct {
	// version is the version whose clients can write the fields.
	version string
	// guarded reports whether the version that has the fields has a status subresource. Whether the
	// version that lacks them has one makes no difference.
	guarded bool
	fields  []string
}

// statusExposures returns the exposed fields, grouped and sorted by the version that lacks them.
func statusExposures(crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict) []statusExposure {
	var all []statusExposure
	for _, leaf := range leaves {
		name := preservedStatus(leaf)
		if name == "" {
			continue
		}
		exposure := statusExposure{version: hub, guarded: hasStatusSubresource(crd, leaf.Version)}
		if leaf.Version == hub {
			if exposure.version = leaf.Spoke; !isServed(crd, exposure.version) {
				continue // no client can write at a version that is not served
			}
		}
		i := slices.IndexFunc(all, func(e statusExposure) bool { return e.version == exposure.version && e.guarded == exposure.guarded })
		if i < 0 {
			i, all = len(all), append(all, exposure)
		}
		all[i].fields = append(all[i].fields, name)
	}
	slices.SortStableFunc(all, func(a, b statusExposure) int { return strings.Compare(a.version, b.version) })
	return all
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
func warnStatus(crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict) []string {
	var warnings []string
	for _, status := range statusExposures(crd, hub, leaves) {
		rights := ""
		if status.guarded {
			rights = "every client that may update objects may change and delete these fields there, without the right to update status, and "
		}
		warnings = append(warnings, fmt.Sprintf(
			"status preserved in an annotation of objects at %s: %s: %sreplacing an object at %s with an older manifest reverts or deletes them: give %s the same fields",
			status.version, few(status.fields), rights, status.version, status.version))
	}
	return warnings
}

func hasStatusSubresource(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == name && v.Subresources != nil && v.Subresources.Status != nil
	})
}

func isServed(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == name && v.Served
	})
}

// checkStatus returns an error for preserved status if the policy refuses it.
func checkStatus(
	action v1alpha1.PreservedStatusAction, crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict,
) field.ErrorList {
	if action != v1alpha1.PreservedStatusRefuse {
		return nil
	}
	var messages []string
	for _, status := range statusExposures(crd, hub, leaves) {
		messages = append(messages, fmt.Sprintf("preserved at %s: %s: give %s the same fields", status.version, few(status.fields), status.version))
	}
	if len(messages) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(declarativePath.Child("preservedStatus"), action,
		strings.Join(messages, "; ")+"; or set preservedStatus to "+string(v1alpha1.PreservedStatusAllow))}
}
