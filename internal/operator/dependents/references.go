// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Source is a resource whose objects may refer to others by apiVersion and kind.
type Source struct {
	Group, Resource string
	Dependency      Dependency
	Impact          Impact
	// Effect says what happens when the version goes.
	Effect string
}

// Sources are the resources whose objects are read completely.
var Sources = []Source{
	// The controller looks for the group and kind, and ignores the version: it reads the scale at the preferred one.
	{"autoscaling", "horizontalpodautoscalers", Autoscaler, Harmless, "the autoscaler still finds its target, by group and kind"},
	{"autoscaling.k8s.io", "verticalpodautoscalers", Autoscaler, Breaks, "the autoscaler may not find its target"},
	{"keda.sh", "scaledobjects", Autoscaler, Breaks, "the autoscaler does not find its target"},
	{"keda.sh", "scaledjobs", Autoscaler, Breaks, "the autoscaler does not find its target"},
	{"kustomize.toolkit.fluxcd.io", "kustomizations", GitOps, Breaks, "Flux does not find the kind at the version: reconciliations fail"},
	{"helm.toolkit.fluxcd.io", "helmreleases", GitOps, Breaks, "Flux does not find the kind at the version: reconciliations fail"},
	{"fluxcd.controlplane.io", "resourcesets", GitOps, Breaks, "Flux does not find the kind at the version: reconciliations fail"},
	{"argoproj.io", "applications", GitOps, Breaks, "Argo CD does not find the kind at the version: synchronizations fail"},
	{"argoproj.io", "applicationsets", GitOps, Breaks, "Argo CD does not find the kind at the version: synchronizations fail"},
	{"apiextensions.crossplane.io", "compositions", Composition, Breaks, "Crossplane does not find the kind at the version"},
	{"apiextensions.crossplane.io", "compositionrevisions", Composition, Breaks, "Crossplane does not find the kind at the version"},
	{"apiextensions.crossplane.io", "usages", Composition, Breaks, "Crossplane does not find the kind at the version"},
	{"protection.crossplane.io", "usages", Composition, Breaks, "Crossplane does not find the kind at the version"},
	{"protection.crossplane.io", "clusterusages", Composition, Breaks, "Crossplane does not find the kind at the version"},
	{"kubernetes.crossplane.io", "objects", Composition, Breaks, "Crossplane does not find the kind at the version"},
	{"kyverno.io", "clusterpolicies", Reference, Breaks, "the policy does not apply to the kind"},
	{"kyverno.io", "policies", Reference, Breaks, "the policy does not apply to the kind"},
	{"cluster.x-k8s.io", "clusters", Reference, Breaks, "Cluster API does not find the kind at the version"},
	{"cluster.x-k8s.io", "clusterclasses", Reference, Breaks, "Cluster API does not find the kind at the version"},
	{"cluster.x-k8s.io", "machines", Reference, Breaks, "Cluster API does not find the kind at the version"},
	{"cluster.x-k8s.io", "machinesets", Reference, Breaks, "Cluster API does not find the kind at the version"},
	{"cluster.x-k8s.io", "machinedeployments", Reference, Breaks, "Cluster API does not find the kind at the version"},
	{"cluster.x-k8s.io", "machinepools", Reference, Breaks, "Cluster API does not find the kind at the version"},
	{"fleet.cattle.io", "bundles", GitOps, Breaks, "Rancher Fleet does not find the kind at the version: deployments fail"},
	{"fleet.cattle.io", "bundledeployments", GitOps, Breaks, "Rancher Fleet does not find the kind at the version: deployments fail"},
	// KubeVirt, for example, keeps the instance type of a virtual machine in one.
	{"apps", "controllerrevisions", Copy, Breaks, "its controller may not be able to read the copy, or to restore it"},
}

// ConfigMaps are read completely only on request: they are many, and few of them have manifests.
var ConfigMaps = Source{"", "configmaps", Copy, Breaks, "the API server refuses the manifest when it is applied"}

// readScale are autoscalers whose controllers read the subresource scale of their targets.
var readScale = []string{"horizontalpodautoscalers", "verticalpodautoscalers", "scaledobjects"}

// of returns the source as it is for a target. Autoscalers break by the loss of the scale, whatever version they name.
func (s Source) of(t *Target) (is Source, cure string, names func(apiVersion, kind string) (version string, found bool)) {
	if t.unscaled == "" || s.Dependency != Autoscaler || !slices.Contains(readScale, s.Resource) {
		return s, "change it to " + t.To, t.Names
	}
	s.Impact = Breaks
	s.Effect = fmt.Sprintf("the autoscaler finds no scale: it reads that at the preferred version, whatever version it names, and %s has no subresource scale", t.unscaled)
	return s, fmt.Sprintf("declare subresources.scale at %s of the CustomResourceDefinition", t.unscaled), t.Scales
}

// mostDepth bounds the recursion into an object.
const mostDepth = 200

// In returns the dependents in an object of the source.
func (s Source) In(t *Target, content map[string]any) []Dependent {
	object := Object{APIVersion: text(content, "apiVersion"), Kind: text(content, "kind")}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		object.Namespace, object.Name = text(metadata, "namespace"), text(metadata, "name")
	}
	s, cure, names := s.of(t)
	f := finder{target: t, names: names}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if name != "metadata" {
			f.walk("."+name, content[name], 1)
		}
	}
	var found []Dependent
	for _, at := range f.found {
		cure := cure
		if strings.HasPrefix(at.field, ".status.") {
			cure = fmt.Sprintf("change the manifest that it reports to %s; if it comes from a chart, so does the manifest", t.To)
		}
		found = append(found, Dependent{
			Dependency: s.Dependency, Impact: s.Impact, Object: object, Field: at.field, Version: at.version, Effect: s.Effect, Cure: cure,
		})
	}
	return found
}

type finder struct {
	target *Target
	// names returns the version that a reference to the kind depends on.
	names func(apiVersion, kind string) (version string, found bool)
	found []struct{ field, version string }
}

func (f *finder) walk(path string, value any, depth int) {
	// A record of what happened depends on nothing.
	if depth > mostDepth || path == ".status.operationState" || path == ".status.history" {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if version, names := f.reference(value); names {
			f.found = append(f.found, struct{ field, version string }{path, version})
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			f.walk(path+"."+name, value[name], depth+1)
		}
	case string:
		if !strings.Contains(value, "\n") {
			return
		}
		// A text that is no manifest, such as a template, names nothing.
		places, _ := f.target.inManifest(value)
		for _, place := range places {
			f.found = append(f.found, struct{ field, version string }{path, place.version})
		}
	case []any:
		for i := range value {
			element := fmt.Sprintf("%s[%d]", path, i)
			if version, names := f.matchedKind(path, value[i]); names {
				f.found = append(f.found, struct{ field, version string }{element, version})
			}
			f.walk(element, value[i], depth+1)
		}
	}
}

// reference reads the forms in which objects refer to others: apiVersion and kind; group, version
// and kind; and the inventory of Flux, whose id is namespace_name_group_Kind.
func (f *finder) reference(value map[string]any) (version string, names bool) {
	if apiVersion := text(value, "apiVersion"); apiVersion != "" {
		return f.names(apiVersion, text(value, "kind"))
	}
	if version := text(value, "version"); version != "" {
		return f.names(text(value, "group")+"/"+version, text(value, "kind"))
	}
	if id := strings.Split(text(value, "id"), "_"); len(id) == 4 {
		return f.names(id[2]+"/"+text(value, "v"), id[3])
	}
	return "", false
}

// matchedKind reads the form of Kyverno: group/version/Kind in a list of kinds.
func (f *finder) matchedKind(path string, value any) (version string, names bool) {
	kind, ok := value.(string)
	parts := strings.Split(kind, "/")
	if !ok || !strings.HasSuffix(path, ".kinds") || len(parts) < 3 {
		return "", false
	}
	return f.names(parts[0]+"/"+parts[1], parts[2])
}

func text(content map[string]any, name string) string {
	value, _ := content[name].(string)
	return value
}
