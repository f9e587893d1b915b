// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Many clients name no version of a kind: autoscalers, disruption budgets, kubectl. They use the preferred
// version, which is the first served one by priority. Conversion converts objects only: a subresource, a
// selectable field or a column that this version does not declare does not exist for them, whatever the other
// versions declare.

// FeatureKind is a kind of Feature.
type FeatureKind string

// The kinds of features.
const (
	Scale           FeatureKind = "Scale"
	ScaleSelector   FeatureKind = "ScaleSelector"
	Status          FeatureKind = "Status"
	SelectableField FeatureKind = "SelectableField"
	PrinterColumns  FeatureKind = "PrinterColumns"
	ShortName       FeatureKind = "ShortName"
	Category        FeatureKind = "Category"
)

// featureTexts name a feature, and say what fails without it. %s is its name.
var featureTexts = map[FeatureKind]struct{ name, effect string }{
	Scale:           {"the subresource scale", "HorizontalPodAutoscalers, PodDisruptionBudgets and kubectl scale fail"},
	ScaleSelector:   {"scale.labelSelectorPath", "HorizontalPodAutoscalers and PodDisruptionBudgets find no pods"},
	Status:          {"the subresource status", "writes of the status by kubectl --subresource fail, and other writes may change the status"},
	SelectableField: {"the selectable field %s", "requests with this field selector fail"},
	PrinterColumns:  {"the columns %s", "kubectl get does not show them"},
	ShortName:       {"the short name %s", "kubectl does not find the kind by it"},
	Category:        {"the category %s", "kubectl get of the category does not list the kind"},
}

// Feature is what a version offers its clients besides the fields of objects, or a further name of the kind.
type Feature struct {
	Kind FeatureKind `json:"kind"`
	// Name of the short name or category, the path of the field, or the names of the columns.
	Name string `json:"name,omitempty"`
}

func (f Feature) String() string {
	return strings.Replace(featureTexts[f.Kind].name, "%s", f.Name, 1)
}

// Loss is a feature that clients no longer find, or that clients of other versions find.
type Loss struct {
	Feature
	// Of is the version that has it, and At the version that lacks it. If they are equal, the version loses it.
	// If they differ, At is the preferred version. Both are empty for names of the kind.
	Of string `json:"of,omitempty"`
	At string `json:"at,omitempty"`
}

// Breaks reports that requests of clients fail, or have another effect. The loss of a column only changes what people see.
func (l Loss) Breaks() bool { return l.Kind != PrinterColumns }

// String says who misses what, and what fails.
func (l Loss) String() string {
	effect := featureTexts[l.Kind].effect
	switch l.At {
	case "":
		return fmt.Sprintf("the kind loses %s: %s", l.Feature, effect)
	case l.Of:
		return fmt.Sprintf("%s loses %s: %s", l.At, l.Feature, effect)
	}
	return fmt.Sprintf("clients that name no version use %s, which lacks %s of %s: %s", l.At, l.Feature, l.Of, effect)
}

// Breaking is what breaks clients, as the beginning of a message. It is empty if nothing does.
func Breaking(losses []Loss) string {
	var breaking []string
	for _, loss := range losses {
		if loss.Breaks() {
			breaking = append(breaking, loss.String())
		}
	}
	const most = 3
	if more := len(breaking) - most; more > 0 {
		breaking = append(breaking[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(breaking, "; ")
}

// Preferred returns the served version that clients use which name none; nil if no version is served.
func Preferred(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for _, version := range ByPriority(crd) {
		if version.Served {
			return &version
		}
	}
	return nil
}

// HasScale reports whether a version has the subresource scale; nil has none.
func HasScale(version *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return version != nil && version.Subresources != nil && version.Subresources.Scale != nil
}

// PreferredLacks returns the features of other served versions that the preferred version lacks. A feature of
// several versions is that of the first one by priority.
func PreferredLacks(crd *apiextensionsv1.CustomResourceDefinition) []Loss {
	preferred := Preferred(crd)
	var losses []Loss
	for _, version := range ByPriority(crd) {
		if !version.Served {
			continue
		}
		for _, loss := range lost(&version, preferred) {
			if !slices.ContainsFunc(losses, func(other Loss) bool { return other.Feature == loss.Feature }) {
				losses = append(losses, loss)
			}
		}
	}
	return losses
}

// Losses returns what clients lose by a change of a CustomResourceDefinition: those that name no version, by another
// preferred version; those of a version that both serve; and those that use a short name or a category.
func Losses(before, after *apiextensionsv1.CustomResourceDefinition) []Loss {
	var losses []Loss
	from, to := Preferred(before), Preferred(after)
	if from != nil && to != nil && from.Name != to.Name {
		losses = lost(from, to)
	}
	for _, old := range ByPriority(before) {
		if next, _ := Version(after, old.Name); next != nil && old.Served && next.Served {
			losses = append(losses, lost(&old, next)...)
		}
	}
	for _, feature := range names(before) {
		if !slices.Contains(names(after), feature) {
			losses = append(losses, Loss{Feature: feature})
		}
	}
	return losses
}

// Without returns a CustomResourceDefinition without the versions that go.
func Without(crd *apiextensionsv1.CustomResourceDefinition, goes func(version string) bool) *apiextensionsv1.CustomResourceDefinition {
	rest := *crd
	rest.Spec.Versions = slices.DeleteFunc(slices.Clone(crd.Spec.Versions), func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return goes(version.Name)
	})
	return &rest
}

// lost returns the features of one version that another lacks, all columns as one.
func lost(of, at *apiextensionsv1.CustomResourceDefinitionVersion) []Loss {
	var losses []Loss
	var columns []string
	has := featuresOf(at)
	for _, feature := range featuresOf(of) {
		switch {
		case slices.Contains(has, feature), feature.Kind == ScaleSelector && !HasScale(at): // without a scale, its selector does not matter
		case feature.Kind == PrinterColumns:
			columns = append(columns, feature.Name)
		default:
			losses = append(losses, Loss{feature, of.Name, at.Name})
		}
	}
	if len(columns) > 0 {
		losses = append(losses, Loss{Feature{PrinterColumns, strings.Join(columns, ", ")}, of.Name, at.Name})
	}
	return losses
}

func featuresOf(version *apiextensionsv1.CustomResourceDefinitionVersion) []Feature {
	var features []Feature
	if HasScale(version) {
		features = append(features, Feature{Kind: Scale})
	}
	if HasScale(version) && version.Subresources.Scale.LabelSelectorPath != nil {
		features = append(features, Feature{Kind: ScaleSelector})
	}
	if version.Subresources != nil && version.Subresources.Status != nil {
		features = append(features, Feature{Kind: Status})
	}
	for _, field := range version.SelectableFields {
		features = append(features, Feature{SelectableField, field.JSONPath})
	}
	for _, column := range version.AdditionalPrinterColumns {
		features = append(features, Feature{PrinterColumns, column.Name})
	}
	return features
}

// names are the further names of the kind, which all versions have.
func names(crd *apiextensionsv1.CustomResourceDefinition) []Feature {
	var features []Feature
	for _, name := range crd.Spec.Names.ShortNames {
		features = append(features, Feature{ShortName, name})
	}
	for _, name := range crd.Spec.Names.Categories {
		features = append(features, Feature{Category, name})
	}
	return features
}

// SelectableFieldsRefused reports that API servers refuse a CustomResourceDefinition because its versions have the same
// selectableFields and different schemas: https://github.com/kubernetes/kubernetes/issues/140689.
func SelectableFieldsRefused(crd *apiextensionsv1.CustomResourceDefinition) bool {
	versions := crd.Spec.Versions
	if len(versions) == 0 || len(versions[0].SelectableFields) == 0 {
		return false
	}
	sameFields, sameSchema := true, true
	for _, version := range versions {
		sameFields = sameFields && equality.Semantic.DeepEqual(version.SelectableFields, versions[0].SelectableFields)
		sameSchema = sameSchema && equality.Semantic.DeepEqual(version.Schema, versions[0].Schema)
	}
	return sameFields && !sameSchema
}
