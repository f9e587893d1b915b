// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// Target is a resource to migrate.
type Target struct {
	// Resource is the storage version of a custom resource, and the preferred version of another
	// one.
	Resource schema.GroupVersionResource
	// CRD is its CustomResourceDefinition; nil if it has none.
	CRD *apiextensionsv1.CustomResourceDefinition
	// StorageVersionHash is what discovery shows for a resource without a CustomResourceDefinition.
	StorageVersionHash string
}

// Name is the name of the resource as resource.group, which is also that of its
// CustomResourceDefinition.
func (t *Target) Name() string { return t.Resource.GroupResource().String() }

// StorageVersion is the version of stored objects, or empty if only its hash is known.
func (t *Target) StorageVersion() string {
	if t.CRD == nil {
		return ""
	}
	return t.Resource.Version
}

func (t *Target) pin() contract.Pin {
	if t.CRD == nil {
		return contract.Pin{Name: t.Name(), StorageVersionHash: t.StorageVersionHash}
	}
	return contract.Pin{Name: t.CRD.Name, UID: t.CRD.UID, Generation: t.CRD.Generation}
}

// oldVersions are the other served versions of a custom resource.
func (t *Target) oldVersions() []string {
	if t.CRD == nil {
		return nil
	}
	return slices.DeleteFunc(crds.ServedVersions(t.CRD), func(version string) bool { return version == t.Resource.Version })
}

// LeftOut is a resource that --all does not migrate.
type LeftOut struct {
	Resource string `json:"resource"`
	// Why says the reason.
	Why string `json:"why"`
	// Problem means that its objects should have been migrated, so that the result is incomplete.
	Problem bool `json:"problem,omitempty"`
}

// unusual are resources that All leaves out: rewriting them has no use.
var unusual = map[schema.GroupResource]string{
	{Resource: "events"}:                               "events expire by themselves; name events to migrate them",
	{Group: "events.k8s.io", Resource: "events"}:       "they are the same objects as events",
	{Group: "coordination.k8s.io", Resource: "leases"}: "their holders write them all the time; name leases.coordination.k8s.io to migrate them",
}

// Finder finds targets in a cluster.
type Finder struct {
	Client    client.Client
	Discovery discovery.DiscoveryInterfaceWithContext
	// Program is the name by which the user called it, for advice.
	Program string
	// Check refuses CustomResourceDefinitions whose objects a rewrite would damage.
	Check func(*apiextensionsv1.CustomResourceDefinition) error
}

// served is a resource that the API server serves, at its preferred version.
type served struct {
	schema.GroupVersionResource
	verbs []string
	hash  string
}

// Named returns the targets of names such as crontabs.example.com, secrets and deployments.apps. The
// error names everything that cannot be migrated.
func (f *Finder) Named(ctx context.Context, names []string) ([]Target, error) {
	var targets []Target
	var errs []error
	var resources []served
	for _, name := range names {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		var err error = apierrors.NewNotFound(schema.GroupResource{}, name)
		if mayBeCustom(name) {
			err = f.Client.Get(ctx, client.ObjectKey{Name: name}, crd)
		}
		switch {
		case err == nil:
			target, err := f.custom(ctx, crd)
			targets, errs = append(targets, target), append(errs, err)
			continue
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("cannot read CustomResourceDefinition %s: %w", name, err)
		}
		if resources == nil {
			if resources, _, err = f.resources(ctx); err != nil {
				return nil, err
			}
		}
		target, problem := f.builtIn(ctx, resources, name)
		targets, errs = append(targets, target), append(errs, problem)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(targets, func(a, b Target) bool { return a.Name() == b.Name() }), nil
}

// mayBeCustom reports whether a resource may have a CustomResourceDefinition: its group has a dot.
func mayBeCustom(name string) bool { return strings.Count(name, ".") >= 2 }

// custom checks that the objects of a CustomResourceDefinition can be migrated.
func (f *Finder) custom(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (Target, error) {
	storage := crds.StorageVersion(crd)
	target := Target{CRD: crd, Resource: crds.Resource(crd, storage)}
	fails := func(format string, args ...any) (Target, error) {
		return target, fmt.Errorf("CustomResourceDefinition "+crd.Name+" "+format, args...)
	}
	switch {
	case crd.DeletionTimestamp != nil:
		return fails("is being deleted, with all its objects")
	case !crds.Condition(crd, apiextensionsv1.Established):
		return fails("is not Established: kubectl describe crd %s shows why", crd.Name)
	case !crds.Serves(crd, storage):
		return fails("does not serve its storage version %s: set served to true for it", storage)
	case crds.Condition(crd, storageMigrating):
		return fails("is being migrated by Kubernetes (its condition StorageMigrating is True): wait until that is over")
	}
	if err := f.Check(crd); err != nil {
		return target, err
	}
	return target, f.checkOthers(ctx, &target)
}

// builtIn finds a resource without a CustomResourceDefinition.
func (f *Finder) builtIn(ctx context.Context, resources []served, name string) (Target, error) {
	var found []served
	for _, resource := range resources {
		if resource.GroupResource().String() == name || !strings.Contains(name, ".") && resource.Resource == name {
			found = append(found, resource)
		}
	}
	// As with kubectl, the core group comes first.
	if core := slices.IndexFunc(found, func(r served) bool { return r.Group == "" }); core >= 0 {
		found = found[core : core+1]
	}
	switch {
	case len(found) == 0:
		return Target{}, fmt.Errorf("the cluster has no resource %s: name it as crontabs.example.com, secrets or deployments.apps", name)
	case len(found) > 1:
		return Target{}, fmt.Errorf("the name %s is ambiguous: say %s or %s", name, found[0].GroupResource(), found[1].GroupResource())
	}
	if mayBeCustom(found[0].GroupResource().String()) && name != found[0].GroupResource().String() {
		targets, err := f.Named(ctx, []string{found[0].GroupResource().String()})
		if err != nil {
			return Target{}, err
		}
		return targets[0], nil
	}
	target := Target{Resource: found[0].GroupVersionResource, StorageVersionHash: found[0].hash}
	if why := found[0].unfit(); why != "" {
		return target, fmt.Errorf("resource %s cannot be migrated: %s", target.Name(), why)
	}
	return target, f.checkOthers(ctx, &target)
}

// unfit says why a resource cannot be migrated; empty if it can.
func (r *served) unfit() string {
	switch {
	case r.hash == "":
		return "discovery shows no storageVersionHash for it, so its API server does not store it in etcd"
	case !slices.Contains(r.verbs, "list") || !slices.Contains(r.verbs, "patch"):
		return "it has no list and patch"
	}
	return ""
}

// resources returns all resources at their preferred versions, and the groups whose resources are
// unknown.
func (f *Finder) resources(ctx context.Context) ([]served, map[schema.GroupVersion]error, error) {
	// Aggregated discovery has no storageVersionHash.
	lists, err := f.Discovery.WithLegacyWithContext(ctx).ServerPreferredResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("cannot read which resources the cluster has: %w", err)
	}
	var resources []served
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				resources = append(resources, served{version.WithResource(resource.Name), resource.Verbs, resource.StorageVersionHash})
			}
		}
	}
	return resources, failed, nil
}

// All returns every resource that can be migrated, and those that are left out.
func (f *Finder) All(ctx context.Context) ([]Target, []LeftOut, error) {
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := f.Client.List(ctx, definitions); err != nil {
		return nil, nil, fmt.Errorf("cannot list CustomResourceDefinitions: %w", err)
	}
	aggregated, err := f.aggregated(ctx)
	if err != nil {
		return nil, nil, err
	}
	resources, failed, err := f.resources(ctx)
	if err != nil {
		return nil, nil, err
	}
	var targets []Target
	var left []LeftOut
	for version, err := range failed {
		left = append(left, LeftOut{Resource: "*." + version.String(), Why: fmt.Sprintf("its resources are unknown: %v", err), Problem: !aggregated[version]})
	}
	custom := map[schema.GroupResource]bool{}
	for i := range definitions.Items {
		crd := &definitions.Items[i]
		custom[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}] = true
		target, err := f.custom(ctx, crd)
		if err != nil {
			left = append(left, LeftOut{Resource: crd.Name, Why: err.Error(), Problem: !errors.As(err, new(managedError))})
			continue
		}
		targets = append(targets, target)
	}
	for _, resource := range resources {
		if custom[resource.GroupResource()] {
			continue
		}
		why, problem := f.whyNot(ctx, &resource, aggregated)
		if why != "" {
			left = append(left, LeftOut{Resource: resource.GroupResource().String(), Why: why, Problem: problem})
			continue
		}
		targets = append(targets, Target{Resource: resource.GroupVersionResource, StorageVersionHash: resource.hash})
	}
	slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.Name(), b.Name()) })
	slices.SortFunc(left, func(a, b LeftOut) int { return strings.Compare(a.Resource, b.Resource) })
	return targets, left, nil
}

// whyNot says why All leaves a resource without a CustomResourceDefinition out.
func (f *Finder) whyNot(ctx context.Context, resource *served, aggregated map[schema.GroupVersion]bool) (why string, problem bool) {
	if aggregated[resource.GroupVersion()] {
		return "another API server stores it, behind an APIService; name it to migrate it", false
	}
	if why := cmp.Or(unusual[resource.GroupResource()], resource.unfit()); why != "" {
		return why, false
	}
	if err := f.checkOthers(ctx, &Target{Resource: resource.GroupVersionResource}); err != nil {
		return err.Error(), true
	}
	return "", false
}

// apiServices is the kind of the registrations of aggregated API servers.
var apiServices = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIServiceList"}

// aggregated returns the versions that other API servers serve.
func (f *Finder) aggregated(ctx context.Context) (map[schema.GroupVersion]bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(apiServices)
	if err := f.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list APIServices, which say what other API servers serve: %w", err)
	}
	found := map[schema.GroupVersion]bool{}
	for _, item := range list.Items {
		if _, is, _ := unstructured.NestedMap(item.Object, "spec", "service"); !is {
			continue
		}
		group, _, _ := unstructured.NestedString(item.Object, "spec", "group")
		version, _, _ := unstructured.NestedString(item.Object, "spec", "version")
		found[schema.GroupVersion{Group: group, Version: version}] = true
	}
	return found, nil
}
