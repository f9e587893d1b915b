// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// install adds the Deployments, their ServiceAccounts and the roles that are bound to those to the
// ClusterServiceVersion. It returns the remaining objects.
func (s *source) install(csv *operatorsv1alpha1.ClusterServiceVersion) []unstructured.Unstructured {
	left := newPile(s.objects)
	spec := operatorsv1alpha1.StrategyDetailsDeployment{}
	for _, object := range left.takeAll("Deployment") {
		deployment := convert[appsv1.Deployment](object)
		spec.DeploymentSpecs = append(spec.DeploymentSpecs, operatorsv1alpha1.StrategyDeploymentSpec{
			Name: deployment.Name, Spec: deployment.Spec, Label: deployment.Labels})
		account := deployment.Spec.Template.Spec.ServiceAccountName
		left.take("ServiceAccount", types.NamespacedName{Namespace: deployment.Namespace, Name: account})
		spec.ClusterPermissions = append(spec.ClusterPermissions, permissions(account, left.rules("ClusterRoleBinding", deployment.Namespace, account))...)
		spec.Permissions = append(spec.Permissions, permissions(account, left.rules("RoleBinding", deployment.Namespace, account))...)
	}
	csv.Spec.InstallStrategy = operatorsv1alpha1.NamedInstallStrategy{
		StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment, StrategySpec: spec}
	csv.Spec.RelatedImages = []operatorsv1alpha1.RelatedImage{{Name: packageName, Image: s.image}}
	csv.Annotations["containerImage"] = s.image
	return left.objects
}

func permissions(account string, rules []rbacv1.PolicyRule) []operatorsv1alpha1.StrategyDeploymentPermissions {
	if len(rules) == 0 {
		return nil
	}
	return []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: rules}}
}

type pile struct{ objects []unstructured.Unstructured }

func newPile(objects []unstructured.Unstructured) *pile {
	return &pile{objects: append([]unstructured.Unstructured(nil), objects...)}
}

// takeIf removes and returns the wanted objects.
func (p *pile) takeIf(wanted func(unstructured.Unstructured) bool) []unstructured.Unstructured {
	var taken, left []unstructured.Unstructured
	for _, object := range p.objects {
		if wanted(object) {
			taken = append(taken, object)
		} else {
			left = append(left, object)
		}
	}
	p.objects = left
	return taken
}

func (p *pile) takeAll(kind string) []unstructured.Unstructured {
	return p.takeIf(func(object unstructured.Unstructured) bool { return object.GetKind() == kind })
}

func (p *pile) take(kind string, name types.NamespacedName) []unstructured.Unstructured {
	return p.takeIf(func(object unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name.Name && object.GetNamespace() == name.Namespace
	})
}

// rules takes the account's bindings of a kind, and their roles, which have the same namespace or none.
func (p *pile) rules(kind, namespace, account string) []rbacv1.PolicyRule {
	var result []rbacv1.PolicyRule
	for _, object := range p.takeBindings(kind, namespace, account) {
		role := convert[rbacv1.ClusterRoleBinding](object).RoleRef // a RoleBinding has the same fields
		for _, found := range p.take(role.Kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: role.Name}) {
			result = append(result, convert[rbacv1.ClusterRole](found).Rules...)
		}
	}
	return result
}

// takeBindings takes bindings whose only subject is the account.
func (p *pile) takeBindings(kind, namespace, account string) []unstructured.Unstructured {
	return p.takeIf(func(object unstructured.Unstructured) bool {
		if object.GetKind() != kind || kind == "RoleBinding" && object.GetNamespace() != namespace {
			return false
		}
		subjects := convert[rbacv1.ClusterRoleBinding](object).Subjects
		return len(subjects) == 1 && subjects[0].Kind == rbacv1.ServiceAccountKind &&
			subjects[0].Namespace == namespace && subjects[0].Name == account
	})
}

// convert decodes an object of config/, which is valid, as its type.
func convert[T any](object unstructured.Unstructured) T {
	var result T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &result); err != nil {
		panic(err)
	}
	return result
}
