// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restrict finds the values that a version's schema no longer accepts after a change. Nothing
// converts such values: an object that has one stays readable, and an API server refuses or prunes it
// when it is written next, which a migration does too.
package restrict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// Restriction is a field that accepts fewer values than before.
type Restriction struct {
	// Version is the version whose schema changes, and Path the path of the field in it, such as
	// .spec.replicas; [*] stands for the items of a list or the values of a map.
	Version string `json:"version"`
	Path    string `json:"path"`
	// Reason says what is not accepted.
	Reason string `json:"reason"`
}

// String returns the path and the reason.
func (r Restriction) String() string { return r.Path + ": " + r.Reason }

// Find compares each version of a CustomResourceDefinition with the same version after a change. The
// result is sorted.
func Find(before, after *apiextensionsv1.CustomResourceDefinition) []Restriction {
	var found []Restriction
	for i := range before.Spec.Versions {
		old := &before.Spec.Versions[i]
		next := validations.GetCRDVersionByName(after, old.Name)
		if next != nil && hasSchema(old) && hasSchema(next) {
			found = append(found, compare(old, next)...)
		}
	}
	slices.SortFunc(found, func(a, b Restriction) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	})
	return found
}

func hasSchema(version *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return version.Schema != nil && version.Schema.OpenAPIV3Schema != nil
}

func compare(old, next *apiextensionsv1.CustomResourceDefinitionVersion) []Restriction {
	var found []Restriction
	before, after, all := validations.FlattenCRDVersion(*old), validations.FlattenCRDVersion(*next), Comparators()
	for path, diff := range validations.FlattenedCRDVersionDiff(before, after) {
		add := func(reason string) {
			found = append(found, Restriction{Version: old.Name, Path: strings.TrimPrefix(path, root), Reason: reason})
		}
		if after[path] == nil {
			if isFirstRemoved(path, after) {
				add("the field is removed: its values are pruned")
			}
			continue
		}
		for _, comparator := range all {
			result := comparator.Compare(diff.Old.DeepCopy(), diff.New.DeepCopy())
			for _, reason := range result.Errors {
				add(result.Name + ": " + strings.Replace(reason, " : ", ": ", 1))
			}
		}
		for _, reason := range otherLimits(diff.Old, diff.New) {
			add(reason)
		}
	}
	return found
}

// root is the path of an object in crdify.
const root = "^"

// isFirstRemoved reports that a removed field is in an object that is still there, and that prunes it.
func isFirstRemoved(path string, after map[string]*apiextensionsv1.JSONSchemaProps) bool {
	end := strings.LastIndexAny(path, ".[")
	if end < 0 {
		return false
	}
	parent := after[path[:end]]
	return parent != nil && parent.AdditionalProperties == nil && (parent.XPreserveUnknownFields == nil || !*parent.XPreserveUnknownFields)
}

// Comparators are those of crdify that find values which were accepted.
func Comparators() []validations.Comparator[apiextensionsv1.JSONSchemaProps] {
	all := []validations.Validation{
		&property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}}, &property.Required{}, &property.Type{},
		&property.Maximum{}, &property.MaxItems{}, &property.MaxLength{}, &property.MaxProperties{},
		&property.Minimum{}, &property.MinItems{}, &property.MinLength{}, &property.MinProperties{},
	}
	for _, each := range all {
		each.SetEnforcement(config.EnforcementPolicyError)
	}
	return validations.ComparatorsForValidations[apiextensionsv1.JSONSchemaProps](all...)
}

// otherLimits compares the limits that crdify does not.
func otherLimits(old, next *apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	if next.Pattern != "" && next.Pattern != old.Pattern {
		found = append(found, fmt.Sprintf("pattern: changed: %q -> %q", old.Pattern, next.Pattern))
	}
	if next.Format != "" && next.Format != old.Format {
		found = append(found, fmt.Sprintf("format: changed: %q -> %q", old.Format, next.Format))
	}
	if old.Nullable && !next.Nullable {
		found = append(found, "nullable: null is no longer accepted")
	}
	return found
}
