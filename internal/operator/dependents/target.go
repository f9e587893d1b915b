// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Target is a kind of objects, with the versions that go and those that stay.
type Target struct {
	// CRD is the name of the CustomResourceDefinition.
	CRD string
	// Group, Kind and Plural are its names.
	Group, Kind, Plural string
	// Namespaced reports whether objects are in namespaces.
	Namespaced bool
	// To is the version that dependents should name instead. It is served.
	To string
	// unscaled is the version that clients use which name none, once the versions are gone, if it lacks
	// the subresource scale of another version; empty otherwise. preferred is the one that they use now.
	unscaled, preferred string
	// versions go. If there are none, every version goes that does not stay.
	versions []string
	stay     []string
}

// NewTarget returns the target for versions of a definition. The definition may already lack them.
// Without versions, every version goes except the storage version.
func NewTarget(crd *apiextensionsv1.CustomResourceDefinition, versions []string) (*Target, error) {
	storage := crds.StorageVersion(crd)
	if slices.Contains(versions, storage) {
		return nil, fmt.Errorf("version %s of %s is the storage version: first store objects in another version", storage, crd.Name)
	}
	t := &Target{
		CRD: crd.Name, Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind, Plural: crd.Spec.Names.Plural,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, To: storage, versions: versions,
	}
	for _, version := range crd.Spec.Versions {
		if !t.Goes(version.Name) || version.Name == storage {
			t.stay = append(t.stay, version.Name)
		}
	}
	if !crds.Serves(crd, storage) {
		served := slices.DeleteFunc(crds.ServedVersions(crd), t.Goes)
		if len(served) == 0 {
			return nil, fmt.Errorf("%s serves no version that stays: serve the storage version %s first", crd.Name, storage)
		}
		t.To = served[0]
	}
	scales := func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return crds.HasScale(&version) }
	if rest := crds.Preferred(crds.Without(crd, t.Goes)); slices.ContainsFunc(crd.Spec.Versions, scales) && !crds.HasScale(rest) {
		t.unscaled, t.preferred = rest.Name, crds.Preferred(crd).Name
	}
	return t, nil
}

// Goes reports whether a version goes.
func (t *Target) Goes(version string) bool {
	if len(t.versions) > 0 {
		return slices.Contains(t.versions, version)
	}
	return !slices.Contains(t.stay, version) && version != t.To
}

// Names returns the version that an apiVersion and a kind name, if it is one that goes.
func (t *Target) Names(apiVersion, kind string) (version string, found bool) {
	group, version, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup || group != t.Group || kind != t.Kind || version == "" || !t.Goes(version) {
		return "", false
	}
	return version, true
}

// Scales returns the version on which an autoscaler depends that has its target by apiVersion and kind, if it finds
// no scale once the versions are gone. It looks for the scale at the preferred version: that goes, or lacks the
// scale now.
func (t *Target) Scales(apiVersion, kind string) (version string, found bool) {
	group, version, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup || group != t.Group || kind != t.Kind || t.unscaled == "" {
		return "", false
	}
	if !t.Goes(version) && t.Goes(t.preferred) {
		version = t.preferred
	}
	return version, true
}

// APIVersion returns the apiVersion of a version.
func (t *Target) APIVersion(version string) string { return t.Group + "/" + version }
