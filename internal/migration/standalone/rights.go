// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/others"
)

// Right is one request that a run sends.
type Right struct {
	Verb      string
	Group     string
	Resource  string
	Name      string
	Namespace string
	// Optional rights make the barrier stronger. A run needs them not.
	Optional bool
}

// String says the right as an API server says it in errors.
func (r Right) String() string {
	text := r.Verb + " " + schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

const crdGroup, crdResource = "apiextensions.k8s.io", "customresourcedefinitions"

// Scope is what a command migrates.
type Scope struct {
	Targets []Target
	// All says that the command finds the targets itself.
	All bool
}

// Rights returns the rights that a run needs for the scope in the cluster of the finder.
func (f *Finder) Rights(scope Scope, o *Options) []Right { return Rights(scope, o, f.serves) }

// Rights returns the rights that a run needs for the scope. Serves tells which of the kinds that other clients
// migrate by the cluster has.
func Rights(scope Scope, o *Options, serves func(schema.GroupKind) bool) []Right {
	var rights []Right
	if scope.All {
		rights = append(rights, Right{Verb: "list", Group: crdGroup, Resource: crdResource},
			Right{Verb: "list", Group: apiServices.Group, Resource: "apiservices"})
	}
	for i := range scope.Targets {
		rights = append(rights, scope.Targets[i].rights(o, serves)...)
	}
	if o.RecordFile == nil {
		rights = append(rights, Right{Verb: "create", Resource: "configmaps", Namespace: o.RecordNamespace})
	}
	for _, kind := range others.Kinds {
		if serves(kind) {
			rights = append(rights, Right{Verb: "list", Group: kind.Group, Resource: "storageversionmigrations"})
		}
	}
	return append(rights,
		Right{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: metav1.NamespaceDefault, Optional: true},
		Right{Verb: "list", Group: "coordination.k8s.io", Resource: "leases", Namespace: metav1.NamespaceSystem, Optional: true})
}

func (t *Target) rights(o *Options, serves func(schema.GroupKind) bool) []Right {
	resource := t.Resource
	rights := []Right{
		{Verb: "list", Group: resource.Group, Resource: resource.Resource},
		{Verb: "patch", Group: resource.Group, Resource: resource.Resource},
	}
	if slices.Contains(o.Fallback, v1alpha1.MigrationFallbackStatus) {
		rights = append(rights, Right{Verb: "patch", Group: resource.Group, Resource: resource.Resource + "/status"})
	}
	if mayBeCustom(t.Name()) {
		rights = append(rights, Right{Verb: "get", Group: crdGroup, Resource: crdResource, Name: t.Name()})
	}
	if t.CRD != nil {
		if !o.KeepStoredVersions {
			rights = append(rights, Right{Verb: "patch", Group: crdGroup, Resource: crdResource + "/status", Name: t.Name()})
		}
		if serves(policyKind) {
			rights = append(rights, Right{Verb: "get", Group: policyKind.Group, Resource: "conversionpolicies", Name: t.Name()})
		}
	}
	if o.RecordFile == nil {
		for _, verb := range []string{"get", "patch"} {
			rights = append(rights, Right{Verb: verb, Resource: "configmaps", Name: ConfigMapName(t.Name()), Namespace: o.RecordNamespace})
		}
	}
	return rights
}

var policyKind = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "ConversionPolicy"}

func (f *Finder) serves(kind schema.GroupKind) bool {
	_, err := f.Client.RESTMapper().RESTMapping(kind)
	return err == nil || !apimeta.IsNoMatchError(err)
}

// rightsAtOnce is how many rights are checked at a time.
const rightsAtOnce = 10

// Missing returns the rights that the user does not have.
func Missing(ctx context.Context, reviews typedauthorizationv1.SelfSubjectAccessReviewInterface, rights []Right) ([]Right, error) {
	var mu sync.Mutex
	var missing []Right
	checks, ctx := errgroup.WithContext(ctx)
	checks.SetLimit(rightsAtOnce)
	for _, right := range rights {
		checks.Go(func() error {
			resource, subresource, _ := strings.Cut(right.Resource, "/")
			review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: subresource, Name: right.Name, Namespace: right.Namespace,
				}}}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("cannot check the right to %s: %w", right, err)
			}
			if !review.Status.Allowed {
				mu.Lock()
				defer mu.Unlock()
				missing = append(missing, right)
			}
			return nil
		})
	}
	err := checks.Wait()
	slices.SortFunc(missing, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return missing, err
}

// Subject is the ServiceAccount that roles are bound to.
type Subject struct{ Namespace, Name string }

// Roles returns a ClusterRole and Roles with the rights, and their bindings if there is a subject.
func Roles(name string, rights []Right, subject *Subject) []any {
	byNamespace := map[string][]Right{}
	for _, right := range rights {
		byNamespace[right.Namespace] = append(byNamespace[right.Namespace], right)
	}
	var objects []any
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		objects = append(objects, roleOf(name, namespace, rulesOf(byNamespace[namespace])))
		if subject != nil {
			objects = append(objects, bindingOf(name, namespace, subject))
		}
	}
	return objects
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

// roleOf returns a ClusterRole for an empty namespace.
func roleOf(name, namespace string, rules []rbacv1.PolicyRule) any {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	if namespace == "" {
		return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacVersion, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules}
	}
	return &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacVersion, Kind: "Role"}, ObjectMeta: meta, Rules: rules}
}

func bindingOf(name, namespace string, subject *Subject) any {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: subject.Namespace, Name: subject.Name}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	if namespace == "" {
		role.Kind = "ClusterRole"
		return &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacVersion, Kind: "ClusterRoleBinding"}, ObjectMeta: meta, RoleRef: role, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacVersion, Kind: "RoleBinding"}, ObjectMeta: meta, RoleRef: role, Subjects: subjects}
}

// rulesOf merges rights into rules: first the verbs of a resource and name, then the resources or
// names with the same verbs.
func rulesOf(rights []Right) []rbacv1.PolicyRule {
	type object struct{ group, resource, name string }
	verbs := map[object][]string{}
	for _, r := range rights {
		of := object{r.Group, r.Resource, r.Name}
		if !slices.Contains(verbs[of], r.Verb) {
			verbs[of] = append(verbs[of], r.Verb)
		}
	}
	objects := make([]object, 0, len(verbs))
	for of := range verbs {
		slices.Sort(verbs[of])
		objects = append(objects, of)
	}
	slices.SortFunc(objects, func(a, b object) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(strings.Join(verbs[a], ","), strings.Join(verbs[b], ",")),
			strings.Compare(a.resource, b.resource), strings.Compare(a.name, b.name))
	})
	var rules []rbacv1.PolicyRule
	for _, of := range objects {
		if last := len(rules) - 1; last >= 0 && rules[last].APIGroups[0] == of.group && slices.Equal(rules[last].Verbs, verbs[of]) {
			rule := &rules[last]
			switch {
			case of.name == "" && len(rule.ResourceNames) == 0:
				rule.Resources = append(rule.Resources, of.resource)
				continue
			case of.name != "" && len(rule.ResourceNames) > 0 && slices.Equal(rule.Resources, []string{of.resource}):
				rule.ResourceNames = append(rule.ResourceNames, of.name)
				continue
			}
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{of.group}, Resources: []string{of.resource}, Verbs: verbs[of]}
		if of.name != "" {
			rule.ResourceNames = []string{of.name}
		}
		rules = append(rules, rule)
	}
	return rules
}
