//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// managerPod is the name of the manager's pod in all tests.
const managerPod = "manager"

// inherited is what other pods take from it.
var inherited = podspec.Inherited{ImagePullSecrets: []string{"registry"}, Placement: v1alpha1.Placement{
	NodeSelector: map[string]string{"pool": "platform"},
	Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
}}

func createManagerPod(ctx context.Context) error {
	return cluster.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: managerPod},
		Spec: corev1.PodSpec{
			ServiceAccountName: "conversion-operator",
			ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
			NodeSelector:       inherited.Placement.NodeSelector,
			Tolerations:        inherited.Placement.Tolerations,
			Containers:         []corev1.Container{{Name: "manager", Image: "conversion-operator:test"}},
		}})
}

// TestReadManagerPod: the manager may read its own pod with the rights of its installation. The API
// server has added tolerations, which other pods do not inherit.
func TestReadManagerPod(t *testing.T) {
	defer installAll(t, "role.yaml", "role_binding.yaml")()
	manager := as(t, "system:serviceaccount:"+system+":conversion-operator", "system:serviceaccounts", "system:serviceaccounts:"+system)
	settings := observed.Settings{Namespace: system}
	expect.Eventually(t, "the rights of the manager have an effect", func() (bool, string) {
		err := ReadManagerPod(t.Context(), manager, managerPod, &settings)
		return err == nil, fmt.Sprint(err)
	})
	if diff := cmp.Diff(observed.Settings{Namespace: system, ManagerAccount: "conversion-operator", Inherited: inherited}, settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	pod := &corev1.Pod{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: managerPod}, pod))
	if len(pod.Spec.Tolerations) != 3 {
		t.Errorf("the pod tolerates %v, want two taints of lost nodes besides its own", pod.Spec.Tolerations)
	}
	if err := ReadManagerPod(t.Context(), manager, "another", &settings); err == nil || !strings.Contains(err.Error(), "conversion-system/another does not exist") {
		t.Errorf("a pod that does not exist: %v", err)
	}
}

// expectInherited compares a pod with what it inherits, with other tolerations in place of the
// inherited ones if there are some.
func expectInherited(t *testing.T, pod corev1.PodSpec, tolerations ...corev1.Toleration) {
	t.Helper()
	want := inherited
	want.Placement.NodeSelector = map[string]string{"pool": "platform", corev1.LabelOSStable: "linux"}
	if len(tolerations) > 0 {
		want.Placement.Tolerations = tolerations
	}
	if diff := cmp.Diff(want, podspec.InheritedFrom(&pod)); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

// TestMigrationWorkload: the pods of a run inherit from the manager's pod, and its policy replaces
// that, also during the run. The account of runs keeps pull secrets of an administrator, who created
// it before the first run.
func TestMigrationWorkload(t *testing.T) {
	const group = "placed.runs.example.com"
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.MigrationRights("crontabs." + group),
			Labels: map[string]string{names.ManagedByLabel: names.ManagedBy}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}}
	expect.NoError(t, cluster.Create(t.Context(), account))
	name := migrating(t, group)
	first := waitForJob(t, name, "at work", goesOn)
	expectInherited(t, first.Spec.Template.Spec)
	record(t, name, half)

	patchPolicy(t, name, `{"spec":{"migration":{"workload":{"tolerations":[{"operator":"Exists"}],"resources":{"requests":{"cpu":"1"}}}}}}`)
	waitForJob(t, name, "being replaced", func(job *batchv1.Job) bool { return job.DeletionTimestamp != nil })
	collect(t, first)
	second := waitForJob(t, name, "another one", goesOn)
	expectInherited(t, second.Spec.Template.Spec, corev1.Toleration{Operator: corev1.TolerationOpExists})
	if resources := second.Spec.Template.Spec.Containers[0].Resources; resources.Requests.Cpu().String() != "1" || len(resources.Limits) != 0 {
		t.Errorf("the resources are %v", resources)
	}
	checkIdle(t, name)

	record(t, name, complete)
	waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated)
	expect.Eventually(t, "its rights are gone", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(account), &rbacv1.Role{})
		left := remainingObjects(t, name)
		return apierrors.IsNotFound(err) && left["ClusterRole"]+left["ClusterRoleBinding"]+left["RoleBinding"]+left["FlowSchema"] == 0, fmt.Sprint(left, err)
	})
	checkIdle(t, name)
	kept := &corev1.ServiceAccount{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(account), kept))
	if kept.UID != account.UID || !cmp.Equal(kept.ImagePullSecrets, account.ImagePullSecrets) {
		t.Errorf("the ServiceAccount is %v", kept)
	}
}
