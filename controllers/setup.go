// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
)

// The rights of the manager; api/docs/rights.md explains each. They do not include
// converted objects: only the ServiceAccount of a migration may access those, while the
// migration runs. To read a sample of objects, the manager impersonates a ServiceAccount
// that is allowed to for that time. The right to grant these rights is a role of its own,
// whose markers are in internal/operator/plan/rights.
//
// Resources that are only read from caches have list and watch, and not get.
//
// +kubebuilder:rbac:groups=conversion-operator.io,resources=conversionpolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=conversion-operator.io,resources=conversionpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=conversion-operator.io,resources=converterfleets,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=conversion-operator.io,resources=converterfleets/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,verbs=patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,verbs=list;watch
// +kubebuilder:rbac:groups=flowcontrol.apiserver.k8s.io,resources=flowschemas,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=list
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=conversion-system,resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=conversion-system,resources=services;serviceaccounts,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=conversion-system,resources=pods,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",namespace=conversion-system,resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=cert-manager.io,namespace=conversion-system,resources=certificates,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=conversion-system,resources=serviceaccounts,verbs=impersonate
// +kubebuilder:rbac:groups=apps,namespace=conversion-system,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,namespace=conversion-system,resources=jobs,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,namespace=conversion-system,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=conversion-system,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=conversion-system,resources=roles;rolebindings,verbs=list;watch;create;patch;delete

// reconcilesAtOnce is more than one, so that one policy with slow requests does not delay the
// others.
const reconcilesAtOnce = 4

// byChild indexes policies by the instance label of their children.
const byChild = "childName"

// CacheOptions limits the cache to objects that the operator manages.
func CacheOptions(namespace string) cache.Options {
	mine := labels.SelectorFromSet(labels.Set{names.ManagedByLabel: names.ManagedBy})
	here := map[string]cache.Config{namespace: {}}
	inNamespace := cache.ByObject{Namespaces: here, Label: mine}
	anywhere := cache.ByObject{Label: mine}
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}:             inNamespace,
			&corev1.Secret{}:                inNamespace,
			&corev1.Service{}:               inNamespace,
			&corev1.ServiceAccount{}:        inNamespace,
			&corev1.Pod{}:                   inNamespace,
			&appsv1.Deployment{}:            inNamespace,
			&batchv1.Job{}:                  inNamespace,
			&policyv1.PodDisruptionBudget{}: inNamespace,
			&discoveryv1.EndpointSlice{}:    {Namespaces: here},
			&rbacv1.Role{}:                  inNamespace,
			&rbacv1.RoleBinding{}:           inNamespace,
			&rbacv1.ClusterRole{}:           anywhere,
			&rbacv1.ClusterRoleBinding{}:    anywhere,
			&flowcontrolv1.FlowSchema{}:     anywhere,
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: anywhere,
			definitionMetadata(): {Transform: withoutAnnotations},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// definitionMetadata returns the type for watching CustomResourceDefinitions by their metadata.
// The definition of a policy is read live.
func definitionMetadata() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return crd
}

// withoutAnnotations saves most of the memory of an object: kubectl apply leaves a copy of all
// schemas in an annotation.
func withoutAnnotations(object any) (any, error) {
	if accessor, err := apimeta.Accessor(object); err == nil {
		accessor.SetAnnotations(nil)
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// ClientOptions disables the cache for kinds that the API server may not serve: a watch would fail
// while cert-manager is not installed.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&cmv1.Certificate{}}}}
}

// SetupWithManager registers the controller, its watches and its background work.
func (r *ConversionPolicyReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ConversionPolicy{}, byChild, func(policy client.Object) []string {
		return []string{names.Child(policy.GetName())}
	})
	if err != nil {
		return err
	}
	if r.RequestTimeout != nil {
		if err := mgr.Add(r.RequestTimeout); err != nil {
			return err
		}
	}
	r.storage = &storageRevision{live: r.Live}
	if err := mgr.Add(r.storage); err != nil {
		return err
	}
	policies := ctrl.NewControllerManagedBy(mgr).
		Named("conversionpolicy").
		WithOptions(controller.Options{MaxConcurrentReconciles: reconcilesAtOnce}).
		WithLogConstructor(func(request *reconcile.Request) logr.Logger { return requestLogger(mgr.GetLogger(), request) }).
		For(&v1alpha1.ConversionPolicy{}).
		WatchesMetadata(definitionMetadata(), urgently(definitionPriority))
	for _, child := range []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.Pod{}, &appsv1.Deployment{}, &batchv1.Job{},
		&policyv1.PodDisruptionBudget{}, &discoveryv1.EndpointSlice{}, &corev1.ServiceAccount{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &flowcontrolv1.FlowSchema{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		policies = policies.Watches(child, handler.EnqueueRequestsFromMapFunc(r.policyOf))
	}
	secrets, err := r.foreignSecrets(ctx, mgr)
	if err != nil {
		return err
	}
	policies = policies.WatchesRawSource(sourceOf(secrets, r.policiesFrom))
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r.pods = core.RESTClient()
	r.start(ctx)
	if err := r.setupFleets(ctx, mgr, secrets); err != nil {
		return err
	}
	for _, runs := range []manager.RunnableFunc{r.tidy, r.Prober.reprobe, r.background.drain} {
		if err := mgr.Add(runs); err != nil {
			return err
		}
	}
	return policies.WatchesRawSource(source.Channel(r.background.woken, urgently(podsPriority))).
		WatchesRawSource(source.Channel(r.background.checked, urgently(checksPriority))).Complete(r)
}

// start initialises the background work.
func (r *ConversionPolicyReconciler) start(ctx context.Context) {
	r.background = newBackground(ctx)
	r.Prober.background = r.background
	r.Checks.start(r.background)
}

// requestLogger adds the policy to every log line of its reconciliations.
func requestLogger(log logr.Logger, request *reconcile.Request) logr.Logger {
	if request == nil {
		return log
	}
	return log.WithValues("policy", request.Name)
}

// tidy runs once, when this manager becomes leader. An error does not stop the manager.
func (r *ConversionPolicyReconciler) tidy(ctx context.Context) error {
	if err := r.Checks.prober.tidy(ctx); err != nil {
		ctrl.LoggerFrom(ctx).Info("Could not restore the CustomResourceDefinition of API server probes", "reason", err.Error())
	}
	return nil
}

// policyOf maps a child to its policy, which may have been deleted.
func (r *ConversionPolicyReconciler) policyOf(ctx context.Context, child client.Object) []reconcile.Request {
	name := child.GetLabels()[names.InstanceLabel]
	if name == "" {
		return nil
	}
	policies := &v1alpha1.ConversionPolicyList{}
	if err := r.Client.List(ctx, policies, client.MatchingFields{byChild: name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Mapping a child to its policy failed", "child", client.ObjectKeyFromObject(child))
		return nil
	}
	requests := make([]reconcile.Request, 0, len(policies.Items))
	for _, policy := range policies.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: policy.Name}})
	}
	if gone := child.GetAnnotations()[names.PolicyAnnotation]; len(requests) == 0 && names.Child(gone) == name {
		r.orphans.add(gone, orphan{})
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: gone}})
	}
	return requests
}

// bySource indexes policies by the Secret that their certificates come from.
const bySource = "sourceSecret"

// foreignSecrets has the Secrets that other clients manage. They do not have the operator's labels,
// so the manager's cache does not hold them. Their metadata is enough to see that one changed.
func (r *ConversionPolicyReconciler) foreignSecrets(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ConversionPolicy{}, bySource, func(object client.Object) []string {
		policy, _ := object.(*v1alpha1.ConversionPolicy)
		return []string{certificates.SourceSecret(policy)}
	})
	if err != nil {
		return nil, err
	}
	others, err := labels.NewRequirement(names.ManagedByLabel, selection.NotEquals, []string{names.ManagedBy})
	if err != nil {
		return nil, err
	}
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{r.Settings.Namespace: {}},
		DefaultLabelSelector: labels.NewSelector().Add(*others),
		DefaultTransform:     withoutAnnotations,
	})
	if err != nil {
		return nil, err
	}
	return metadata, mgr.Add(metadata)
}

// sourceOf wakes what a changed Secret of another client is mapped to.
func sourceOf(secrets cache.Cache, users handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request]) source.Source {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return source.Kind(secrets, secret, handler.TypedEnqueueRequestsFromMapFunc(users))
}

// policiesFrom maps a Secret of another client to the policies whose certificates come from it.
func (r *ConversionPolicyReconciler) policiesFrom(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	policies := &v1alpha1.ConversionPolicyList{}
	if err := r.Client.List(ctx, policies, client.MatchingFields{bySource: secret.Name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Mapping a Secret to its policies failed", "secret", secret.Name)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(policies.Items))
	for _, policy := range policies.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: policy.Name}})
	}
	return requests
}
