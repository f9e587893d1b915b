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
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// exposed are the fields below .status that objects hold in an annotation while they
// are at one version. API servers keep .status from writes of the object, and
// annotations from writes of the status: preserved status is where it does not belong.
type exposed struct {
	// version is the one whose writers reach them.
	version string
	// guarded tells that they are behind the status subresource in the version that has
	// them. What the version that lacks them has makes no difference.
	guarded bool
	fields  []string
}

// exposedStatus finds them, by the version that lacks them.
func exposedStatus(crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict) []exposed {
	var all []exposed
	for _, leaf := range leaves {
		name := preservedStatus(leaf)
		if name == "" {
			continue
		}
		at := exposed{version: hub, guarded: hasStatusSubresource(crd, leaf.Version)}
		if leaf.Version == hub {
			if at.version = leaf.Spoke; !isServed(crd, at.version) {
				continue // clients cannot write there, and nothing is carried on from there
			}
		}
		i := slices.IndexFunc(all, func(e exposed) bool { return e.version == at.version && e.guarded == at.guarded })
		if i < 0 {
			i, all = len(all), append(all, at)
		}
		all[i].fields = append(all[i].fields, name)
	}
	slices.SortStableFunc(all, func(a, b exposed) int { return strings.Compare(a.version, b.version) })
	return all
}

// preservedStatus is how messages name a leaf field below .status that is preserved, or of
// which single values are. It is empty for all others.
func preservedStatus(leaf FieldVerdict) string {
	path, err := conversion.ParsePath(leaf.Root)
	switch name := leaf.Version + ":" + leaf.Root; {
	case err != nil || path[0] != "status":
		return ""
	case leaf.Owner == OwnerPreserved:
		return name
	case leaf.Owner == OwnerExact && leaf.Odd:
		return name + " (values that " + shortRule(leaf.Rule) + " cannot express)"
	}
	return ""
}

// warnStatus names the fields below .status that are preserved.
func warnStatus(crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict) []string {
	var warnings []string
	for _, status := range exposedStatus(crd, hub, leaves) {
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

// checkStatus holds the leaves against a policy that has no status preserved.
func checkStatus(
	action v1alpha1.PreservedStatusAction, crd *apiextensionsv1.CustomResourceDefinition, hub string, leaves []FieldVerdict,
) field.ErrorList {
	if action != v1alpha1.PreservedStatusRefuse {
		return nil
	}
	var says []string
	for _, status := range exposedStatus(crd, hub, leaves) {
		says = append(says, fmt.Sprintf("preserved at %s: %s: give %s the same fields", status.version, few(status.fields), status.version))
	}
	if len(says) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(declarativePath.Child("preservedStatus"), action,
		strings.Join(says, "; ")+"; or set preservedStatus to "+string(v1alpha1.PreservedStatusAllow))}
}
