//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestDependentsBlockRemoval: a version stays served while the account that searches has no rights, or
// not all of them, and while objects name the version. What names it later blocks its removal. It is
// removed when nothing does.
func TestDependentsBlockRemoval(t *testing.T) {
	t.Parallel()
	k := newKind(t, "named.retired.example.com")
	k.apply(t, "v1", "one", "tool", map[string]any{"host": "a"})
	planted := k.plant(t)
	k.follow(t, "storageVersion: v1, migration: {mode: Automatic}, retirement: [{version: v1beta1, action: Remove, after: 0s, dependents: Check}]")
	k.blocked(t, v1alpha1.ReasonCheckFailed, v1alpha1.BlockedDependentsUnknown, "is forbidden: User \"system:serviceaccount:conversion-system:conversion-operator-dependents\" cannot get")

	// An account with some of the rights finds some dependents, and does not say that there are no more.
	install(t, "components/dependents/rights.yaml")
	role := get(t, names.DependentsAccount, &rbacv1.ClusterRole{})
	checkProtected(t)
	all := slices.Clone(role.Rules)
	role.Rules = append(role.Rules[1:], rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
	expect.NoError(t, cluster.Update(t.Context(), role))
	may(t, "list", "*", false)
	may(t, "list", "configmaps", true)
	k.search(t)
	k.blocked(t, v1alpha1.ReasonBlocked, v1alpha1.BlockedDependents, "other objects name it (at least 1): ConfigMap default/owned (OwnerReference): ")

	role.Rules = all
	expect.NoError(t, cluster.Update(t.Context(), role))
	may(t, "list", "*", true)
	k.search(t)
	k.blocked(t, v1alpha1.ReasonBlocked, v1alpha1.BlockedDependents, "other objects name it (2): ValidatingWebhookConfiguration named.example.com (AdmissionWebhook), ConfigMap default/owned (OwnerReference): ")
	expect.Equal(t, "v1beta1 is served", true, slices.Contains(crds.ServedVersions(getCRD(t, k.name)), "v1beta1"))

	// Records of Helm are read only if the account has that right, too.
	allowReleases(t)
	may(t, "get", "secrets", true)
	k.search(t)
	k.blocked(t, v1alpha1.ReasonBlocked, v1alpha1.BlockedDependents, "other objects name it (3): ")
	k.blocked(t, v1alpha1.ReasonBlocked, v1alpha1.BlockedDependents, "(HelmRelease)")

	// The autoscaler stays: Kubernetes ignores the version there.
	for _, object := range planted[:3] {
		expect.NoError(t, cluster.Delete(t.Context(), object))
	}
	patch(t, getPolicy(t, k.name), `{"spec":{"retirement":[{"version":"v1beta1","action":"Unserve","after":"0s","dependents":"Check"}]}}`)
	expect.Eventually(t, "v1beta1 is not served", func() (bool, string) {
		return slices.Equal(crds.ServedVersions(getCRD(t, k.name)), []string{"v1"}), fmt.Sprint(getPolicy(t, k.name).Status.Conditions)
	})
	planted[1].SetResourceVersion("")
	expect.NoError(t, cluster.Create(t.Context(), planted[1]))
	patch(t, getPolicy(t, k.name), `{"spec":{"retirement":[{"version":"v1beta1","action":"Remove","after":"0s","dependents":"Check"}]}}`)
	k.blocked(t, v1alpha1.ReasonBlocked, v1alpha1.BlockedDependents, "other objects name it (1): ValidatingWebhookConfiguration named.example.com (AdmissionWebhook): ")

	expect.NoError(t, cluster.Delete(t.Context(), planted[1]))
	k.search(t)
	expect.Eventually(t, "v1beta1 is removed", func() (bool, string) {
		return len(getCRD(t, k.name).Spec.Versions) == 1, fmt.Sprint(getPolicy(t, k.name).Status.Conditions)
	})
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionTrue, v1alpha1.ReasonRetired, nil)
}

// plant creates objects that name v1beta1. The last one is harmless.
func (k *kind) plant(t *testing.T) []client.Object {
	t.Helper()
	one, err := k.at("v1").Get(t.Context(), "one", metav1.GetOptions{})
	expect.NoError(t, err)
	webhooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "named.example.com"}}
	webhooks.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "named.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		FailurePolicy: ptr.To(admissionregistrationv1.Ignore), ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost:1/validate")},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{k.group}, APIVersions: []string{"v1beta1"}, Resources: []string{"crontabs"}},
		}},
	}}
	release, err := json.Marshal(map[string]any{"name": "named", "namespace": "default", "version": 1, "info": map[string]any{"status": "deployed"},
		"manifest": "apiVersion: " + k.group + "/v1beta1\nkind: CronTab\nmetadata: {name: two}\n"})
	expect.NoError(t, err)
	planted := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: k.group + "/v1beta1", Kind: "CronTab", Name: "one", UID: one.GetUID()}}}},
		webhooks,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sh.helm.release.v1.named.v1",
			Labels: map[string]string{"owner": "helm", "name": "named", "status": "deployed", "version": "1"}},
			Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(release))}},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "named"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 2,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: k.group + "/v1beta1", Kind: "CronTab", Name: "one"}}},
	}
	for _, object := range planted {
		expect.NoError(t, cluster.Create(t.Context(), object))
	}
	return planted
}

// allowReleases gives the account that searches the right to read records of Helm.
func allowReleases(t *testing.T) {
	t.Helper()
	named := metav1.ObjectMeta{Name: "dependents-helm"}
	role := &rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: names.DependentsAccount}}}
	expect.NoError(t, cluster.Create(t.Context(), role))
	expect.NoError(t, cluster.Create(t.Context(), binding))
}

// checkProtected: the manager can neither change nor delete the account, its rights and their binding.
func checkProtected(t *testing.T) {
	t.Helper()
	of := metav1.ObjectMeta{Name: names.DependentsAccount}
	account := &corev1.ServiceAccount{ObjectMeta: of}
	account.Namespace = system
	for _, object := range []client.Object{account, &rbacv1.ClusterRole{ObjectMeta: of}, &rbacv1.ClusterRoleBinding{ObjectMeta: of}} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"conversion-operator"}}}`))
		for verb, err := range map[string]error{
			"delete": asManager(t).Delete(t.Context(), object), "patch": asManager(t).Patch(t.Context(), object, patch),
		} {
			if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				t.Errorf("%s of %T as the manager: %v", verb, object, err)
			}
		}
	}
}

// may waits until the API server knows whether the account that searches has a right.
func may(t *testing.T, verb, resource string, want bool) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("the account may %s %s: %t", verb, resource, want), func() (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               names.Searcher(names.DependentsAccount, system),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource},
		}}
		expect.NoError(t, cluster.Create(t.Context(), review))
		return review.Status.Allowed == want, review.Status.Reason
	})
}

// search has the manager search at once, as a change of the policy does.
func (k *kind) search(t *testing.T) {
	t.Helper()
	patch(t, getPolicy(t, k.name), `{"spec":{"retirement":[{"version":"v1beta1","action":"Unserve","after":"0s","dependents":"Check"}]}}`)
	patch(t, getPolicy(t, k.name), `{"spec":{"retirement":[{"version":"v1beta1","action":"Remove","after":"0s","dependents":"Check"}]}}`)
}

// blocked waits until the condition and the obstacle of v1beta1 have these reasons and this message.
func (k *kind) blocked(t *testing.T, reason string, by v1alpha1.VersionBlockReason, message string) {
	t.Helper()
	expect.Eventually(t, "v1beta1 is blocked by "+string(by), func() (bool, string) {
		is := k.status(t, "v1beta1")
		return blockedBy(by, message)(is), fmt.Sprintf("%+v", is)
	})
	waitFor(t, k.name, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, reason, []string{message})
}
