// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// delete deletes the objects that a step names. Missing objects are not an error.
func (r *ConversionPolicyReconciler) delete(ctx context.Context, s step.Step) error {
	switch s := s.(type) {
	case step.DeleteRulesets:
		return r.deleteAll(ctx, &corev1.ConfigMap{ObjectMeta: r.named(s.Name)})
	case step.DeleteDeployment:
		return r.deleteAll(ctx, &appsv1.Deployment{ObjectMeta: r.named(s.Name)})
	case step.DeleteService:
		return r.deleteAll(ctx, &corev1.Service{ObjectMeta: r.named(s.Name)}, &policyv1.PodDisruptionBudget{ObjectMeta: r.named(s.Name)})
	case step.DeleteSecret:
		err := r.deleteAll(ctx, &cmv1.Certificate{ObjectMeta: r.named(s.Name)})
		if err != nil && !meta.IsNoMatchError(err) {
			return err // no match: cert-manager is not installed
		}
		return r.deleteAll(ctx, &corev1.Secret{ObjectMeta: r.named(s.Name)})
	case step.DeleteRun:
		return r.deleteAll(ctx, r.job(s.Name), &corev1.ConfigMap{ObjectMeta: r.named(s.Name)})
	case step.DeleteJob:
		job := r.job(s.Name)
		job.UID = s.UID
		return r.deleteAll(ctx, job)
	case step.DeleteRights:
		return r.deleteRights(ctx, s)
	case step.DeleteAdmission:
		return r.deleteAll(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.Name}})
	}
	return nil
}

func (r *ConversionPolicyReconciler) deleteRights(ctx context.Context, s step.DeleteRights) error {
	var objects []client.Object
	if !s.KeepClusterRole {
		objects = append(objects,
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: s.Name}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Name}})
	}
	if s.OfRuns {
		objects = append(objects,
			&flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: s.Name}},
			&rbacv1.RoleBinding{ObjectMeta: r.named(s.Name)},
			&rbacv1.Role{ObjectMeta: r.named(s.Name)})
		if !s.KeepAccount {
			objects = append(objects, &corev1.ServiceAccount{ObjectMeta: r.named(s.Name)})
		}
	}
	return r.deleteAll(ctx, objects...)
}

// deleteAll deletes those of the objects that are the operator's.
func (r *ConversionPolicyReconciler) deleteAll(ctx context.Context, objects ...client.Object) error {
	var failed []error
	for _, object := range objects {
		failed = append(failed, r.deleteOne(ctx, object))
	}
	return errors.Join(failed...)
}

// deleteOne deletes an object by its uid, which it reads if the caller has not. A ConfigMap must also be
// as it was read: another policy may have stored a ruleset there, or a migration its record. A Job is
// deleted in the foreground, so that it exists until its pods are gone.
func (r *ConversionPolicyReconciler) deleteOne(ctx context.Context, object client.Object) error {
	if object.GetUID() == "" {
		found, err := r.existing(ctx, object)
		if err != nil || found == nil || found.Labels[names.ManagedByLabel] != names.ManagedBy {
			return err
		}
		object.SetUID(found.UID)
		object.SetResourceVersion(found.ResourceVersion)
	}
	precondition, propagation := client.Preconditions{UID: new(object.GetUID())}, metav1.DeletePropagationBackground
	switch object.(type) {
	case *corev1.ConfigMap:
		precondition.ResourceVersion = new(object.GetResourceVersion())
	case *batchv1.Job:
		propagation = metav1.DeletePropagationForeground
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, object, precondition, client.PropagationPolicy(propagation)))
}

// deleteChildren deletes everything with an instance label. It lists live, because the
// cache may miss objects that were created a moment ago, and no later reconciliation would find
// them. It deletes by uid, so that a manager that was paused in between does not delete what its
// successor created.
func (r *ConversionPolicyReconciler) deleteChildren(ctx context.Context, instance string) error {
	for _, kind := range r.childKinds() {
		err := r.Live.List(ctx, kind.list, instanceOf(instance), kind.from)
		if meta.IsNoMatchError(err) {
			continue // cert-manager is not installed
		}
		if err != nil {
			return err
		}
		err = meta.EachListItem(kind.list, func(item runtime.Object) error {
			return r.deleteAll(ctx, item.(client.Object)) //nolint:forcetypeassert // every kind listed is a client.Object
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// childKind is a kind of child objects, and their namespace.
type childKind struct {
	list client.ObjectList
	from client.InNamespace
}

// childKinds returns the kinds in the order of deletion: an object before those that it depends
// on.
func (r *ConversionPolicyReconciler) childKinds() []childKind {
	here := client.InNamespace(r.Settings.Namespace)
	return []childKind{
		// It lets API servers call the pods, so it is deleted before them.
		{&admissionregistrationv1.ValidatingWebhookConfigurationList{}, ""},
		{&batchv1.JobList{}, here}, {&appsv1.DeploymentList{}, here}, {&policyv1.PodDisruptionBudgetList{}, here},
		{&corev1.ServiceList{}, here}, {&corev1.ConfigMapList{}, here}, {&cmv1.CertificateList{}, here}, {&corev1.SecretList{}, here},
		{&flowcontrolv1.FlowSchemaList{}, ""}, {&rbacv1.ClusterRoleBindingList{}, ""}, {&rbacv1.ClusterRoleList{}, ""},
		{&rbacv1.RoleBindingList{}, here}, {&rbacv1.RoleList{}, here}, {&corev1.ServiceAccountList{}, here},
	}
}

// instanceOf selects the objects of a policy or a fleet.
func instanceOf(instance string) client.MatchingLabels {
	return client.MatchingLabels{names.InstanceLabel: instance, names.ManagedByLabel: names.ManagedBy}
}

func (r *ConversionPolicyReconciler) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.Settings.Namespace, Name: name}
}

func (r *ConversionPolicyReconciler) job(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: r.named(name)}
}
