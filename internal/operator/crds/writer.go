// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The tools that WriterOf recognizes.
const (
	Crossplane = "Crossplane"
	OLM        = "OLM"
	Kro        = "kro"
	Helm       = "Helm"
	Fleet      = "Rancher Fleet"
)

// Crossplane's kind from which it generates a CustomResourceDefinition.
const (
	CompositeGroup = "apiextensions.crossplane.io"
	CompositeKind  = "CompositeResourceDefinition"
)

// Groups and labels by which the other writers are recognized.
const (
	crossplanePackages = "pkg.crossplane.io"
	kroGroup           = "kro.run"
	olmGroup           = "operators.coreos.com"
	olmV1Group         = "olm.operatorframework.io"
	kroLabel           = "kro.run/resource-graph-definition-name"
	olmAnnotation      = "operatorframework.io/installed-alongside-"
	helmAnnotation     = "meta.helm.sh/release-"
	fleetAnnotation    = "objectset.rio.cattle.io/id"
)

// Writer is a tool that writes a CustomResourceDefinition again and again, from a source of its own.
// A change of the CustomResourceDefinition does not last, unless the tool omits the field.
type Writer struct {
	// Tool is the name of the tool.
	Tool string
	// Source is what the tool writes it from, named as kubectl names it; for Helm and Rancher Fleet the
	// namespace and name of the release. It is empty if the CustomResourceDefinition does not tell.
	Source string
	// Change says in which object or file users change the CustomResourceDefinition instead.
	Change string
}

// WriterOf returns the tool that writes a CustomResourceDefinition, or nil if none is recognized. A
// controller in ownerReferences counts more than labels, which manifests may have copied.
func WriterOf(crd *apiextensionsv1.CustomResourceDefinition) *Writer {
	for _, recognize := range []func(*apiextensionsv1.CustomResourceDefinition) *Writer{byCrossplane, byKro, byOLM, byHelm} {
		if writer := recognize(crd); writer != nil {
			return writer
		}
	}
	return nil
}

// CompositeOf returns the reference to the CompositeResourceDefinition from which Crossplane
// generates a CustomResourceDefinition, or nil if it does not.
func CompositeOf(crd *apiextensionsv1.CustomResourceDefinition) *metav1.OwnerReference {
	if owner, group := controllerOf(crd); group == CompositeGroup && owner.Kind == CompositeKind {
		return owner
	}
	return nil
}

// controllerOf returns the controller among the owners, and its group.
func controllerOf(of metav1.Object) (owner *metav1.OwnerReference, group string) {
	if owner = metav1.GetControllerOf(of); owner == nil {
		return nil, ""
	}
	parsed, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return nil, ""
	}
	return owner, parsed.Group
}

func byCrossplane(crd *apiextensionsv1.CustomResourceDefinition) *Writer {
	owner, group := controllerOf(crd)
	switch group {
	case CompositeGroup:
		source := object(owner.Kind, group, owner.Name)
		return &Writer{Tool: Crossplane, Source: source, Change: source}
	case crossplanePackages:
		source := object(owner.Kind, group, owner.Name)
		return &Writer{Tool: Crossplane, Source: source, Change: "the package of " + source}
	}
	return nil
}

func byKro(crd *apiextensionsv1.CustomResourceDefinition) *Writer {
	name := cmp.Or(crd.Labels[kroLabel], crd.Labels["internal."+kroLabel])
	if name == "" && crd.Labels["kro.run/owned"] != "true" {
		return nil
	}
	if name == "" {
		return &Writer{Tool: Kro, Change: "its ResourceGraphDefinition"}
	}
	source := object("ResourceGraphDefinition", kroGroup, name)
	return &Writer{Tool: Kro, Source: source, Change: source}
}

// ByOLM1 reports that OLM 1 installs a CustomResourceDefinition, which checks each change of it.
func ByOLM1(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Labels[olmV1Group+"/owner-name"] != ""
}

func byOLM(crd *apiextensionsv1.CustomResourceDefinition) *Writer {
	if owner := crd.Labels[olmV1Group+"/owner-name"]; owner != "" {
		source := object(cmp.Or(crd.Labels[olmV1Group+"/owner-kind"], "ClusterExtension"), olmV1Group, owner)
		return &Writer{Tool: OLM, Source: source, Change: "the bundle of " + source}
	}
	for _, key := range slices.Sorted(maps.Keys(crd.Annotations)) {
		if strings.HasPrefix(key, olmAnnotation) {
			namespace, name, _ := strings.Cut(crd.Annotations[key], "/")
			source := object("ClusterServiceVersion", olmGroup, name)
			return &Writer{Tool: OLM, Source: source, Change: "the bundle of " + source + " in namespace " + namespace}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(crd.Labels)) {
		if operator, is := strings.CutPrefix(key, olmGroup+"/"); is {
			source := object("Operator", olmGroup, operator)
			return &Writer{Tool: OLM, Source: source, Change: "the bundle of " + source}
		}
	}
	if crd.Labels["olm.managed"] == "true" {
		return &Writer{Tool: OLM, Change: "the bundle that has it"}
	}
	return nil
}

func byHelm(crd *apiextensionsv1.CustomResourceDefinition) *Writer {
	name := crd.Annotations[helmAnnotation+"name"]
	if name == "" {
		return nil
	}
	release := crd.Annotations[helmAnnotation+"namespace"] + "/" + name
	if crd.Annotations[fleetAnnotation] != "" { // it installs each bundle as a release
		return &Writer{Tool: Fleet, Source: release, Change: "the bundle of Rancher Fleet with the release " + release}
	}
	return &Writer{Tool: Helm, Source: release, Change: "the chart of the Helm release " + release}
}

// object names an object as kubectl does.
func object(kind, group, name string) string {
	return strings.ToLower(kind) + "s." + group + "/" + name
}
