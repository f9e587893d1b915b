//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// as returns the client of a user with the rights of RBAC only.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(direct)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	theirs, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	expect.NoError(t, err)
	return theirs
}

// TestGrants: a manager that may not grant rights recognises the rights that others granted. The
// commands in its message are sufficient.
func TestGrants(t *testing.T) {
	defer install(t, "rbac/role.yaml", "rbac/role_binding.yaml")()
	asItself := as(t, "system:serviceaccount:"+system+":conversion-operator", "system:serviceaccounts", "system:serviceaccounts:"+system)
	crd := create(t, manifest("manual.grants.example.com", "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	migrate, read, clearing := rights.Of(observed.Cluster{CRD: crd, Policy: policy})

	now := time.Now()
	authorizer := NewAuthorizer(asItself, func() time.Time { return now })
	mayGrant := func(want bool) {
		t.Helper()
		expect.Eventually(t, fmt.Sprintf("that it may grant is %t", want), func() (bool, string) {
			now = now.Add(rightsAge)
			may, err := authorizer.MayGrant(t.Context())
			return err == nil && may == want, fmt.Sprint(may, err)
		})
	}
	mayGrant(false)
	for _, grant := range []rights.Grant{migrate, read, clearing} {
		if may, err := authorizer.May(t.Context(), system, grant); may || err != nil {
			t.Errorf("%s has it before any client granted it: %t, %v", grant.Account, may, err)
		}
		for command := range strings.SplitSeq(grant.Commands(system), "; ") {
			if _, said, err := kubectl(strings.Fields(command)[1:]...); err != nil {
				why, _ := io.ReadAll(said)
				t.Fatalf("%s: %v: %s", command, err, why)
			}
		}
		expect.Eventually(t, grant.Account+" has what was granted", func() (bool, string) {
			may, err := authorizer.May(t.Context(), system, grant)
			return may && err == nil, fmt.Sprint(may, err)
		})
	}
	withdraw := install(t, "rbac/grants/role.yaml", "rbac/grants/role_binding.yaml")
	mayGrant(true)
	withdraw()
	mayGrant(false)
}

// TestTwoManagers: a manager accepts the objects that another one created, and not those of other
// clients.
func TestTwoManagers(t *testing.T) {
	defer install(t, "rbac/role.yaml", "rbac/role_binding.yaml")()
	itself := as(t, "system:serviceaccount:"+system+":conversion-operator", "system:serviceaccounts")
	first := &ConversionPolicyReconciler{Client: itself, Live: itself}
	made := func(labels map[string]string, name string) []client.Object {
		meta := metav1.ObjectMeta{Namespace: system, Name: name, Labels: labels}
		job := &batchv1.Job{ObjectMeta: meta}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
		return []client.Object{job, &corev1.Secret{ObjectMeta: meta}}
	}
	ours := map[string]string{names.ManagedByLabel: names.ManagedBy, names.InstanceLabel: "two"}
	for range 2 {
		for _, object := range made(ours, "two-managers") {
			expect.Eventually(t, fmt.Sprintf("%T is there", object), func() (bool, string) {
				err := first.createOnce(t.Context(), object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy is of the same type
				return err == nil, fmt.Sprint(err)
			})
		}
	}
	for i, object := range made(nil, "of-others") {
		expect.NoError(t, cluster.Create(t.Context(), object))
		err := first.createOnce(t.Context(), made(ours, "of-others")[i])
		expect.Contains(t, fmt.Sprintf("the refusal to take %T of another client", object), fmt.Sprint(err), "exists without the labels")
	}
}

// TestUserRoles: users with the viewer role cannot write policies, and users with the editor role
// cannot end a conversion.
func TestUserRoles(t *testing.T) {
	defer install(t, "rbac/people.yaml")()
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.people.example.com"}}
	policy.Spec.Converter.None = &v1alpha1.NoneConverter{}
	policy.Spec.Suspend = true
	expect.NoError(t, cluster.Create(t.Context(), policy))
	defer func() { expect.NoError(t, client.IgnoreNotFound(cluster.Delete(t.Context(), policy))) }()
	for role, may := range map[string]struct{ look, write, end bool }{
		"view":  {look: true},
		"edit":  {look: true, write: true},
		"admin": {look: true, write: true, end: true},
	} {
		t.Run(role, func(t *testing.T) {
			name := "conversion-operator-policies-" + role
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role}},
			}
			expect.NoError(t, cluster.Create(t.Context(), binding))
			defer func() { expect.NoError(t, cluster.Delete(t.Context(), binding)) }()
			them := as(t, role)
			expect.Eventually(t, "the role is in force", func() (bool, string) {
				err := them.Get(t.Context(), client.ObjectKeyFromObject(policy), &v1alpha1.ConversionPolicy{})
				return err == nil, fmt.Sprint(err)
			})
			look := them.List(t.Context(), &v1alpha1.ConversionPolicyList{})
			write := them.Patch(t.Context(), policy.DeepCopy(), client.RawPatch(mergePatch, []byte(`{"metadata":{"labels":{"a":"b"}}}`)), client.DryRunAll)
			end := them.Delete(t.Context(), policy.DeepCopy(), client.DryRunAll)
			status := them.Status().Patch(t.Context(), policy.DeepCopy(), client.RawPatch(mergePatch, []byte(`{"status":{"activatedCRD":"b"}}`)), client.DryRunAll)
			got := []bool{look == nil, write == nil, end == nil, status == nil}
			expect.Equal(t, "may look, write, end it, write its status", []bool{may.look, may.write, may.end, false}, got)
		})
	}
}

// TestRepeatedEvents: the manager's rights suffice to count a repeated event.
func TestRepeatedEvents(t *testing.T) {
	defer install(t, "rbac/role.yaml", "rbac/role_binding.yaml")()
	itself := rest.CopyConfig(direct)
	itself.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + system + ":conversion-operator",
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	api, err := eventsclient.NewForConfig(itself)
	expect.NoError(t, err)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api})
	broadcaster.StartRecordingToSink(t.Context().Done())
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(cluster.Scheme(), "repeats")
	crd := create(t, manifest("repeats.grants.example.com", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	expect.Eventually(t, "the event is counted", func() (bool, string) {
		recorder.Eventf(crd, nil, corev1.EventTypeNormal, "Repeats", "Repeating", "again")
		list := &eventsv1.EventList{}
		expect.NoError(t, cluster.List(t.Context(), list))
		return slices.ContainsFunc(list.Items, func(event eventsv1.Event) bool {
			return event.Reason == "Repeats" && event.Series != nil
		}), fmt.Sprint(len(list.Items), " events")
	})
}
