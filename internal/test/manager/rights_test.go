//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestGrants: a manager that may not grant rights recognises the rights that others granted. The
// commands in its message are sufficient. The test is not parallel, as the manager lacks a right meanwhile.
func TestGrants(t *testing.T) {
	expect.NoError(t, withdrawGrants(t.Context()))
	crd := define(t, "manual.grants.example.com", "v1", "v1beta1")
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	state := observed.Cluster{CRD: crd, Policy: policy}

	asItself, err := client.New(manager.config, client.Options{Scheme: cluster.Scheme()})
	expect.NoError(t, err)
	now := time.Now()
	authorizer := controllers.NewAuthorizer(asItself, func() time.Time { return now })
	mayGrant := func(want bool) {
		t.Helper()
		expect.Eventually(t, fmt.Sprintf("that it may grant is %t", want), func() (bool, string) {
			now = now.Add(time.Hour) // it remembers an answer for less
			may, err := authorizer.MayGrant(t.Context())
			return err == nil && may == want, fmt.Sprint(may, err)
		})
	}
	mayGrant(false)
	for _, grant := range []rights.Grant{rights.ToMigrate(state), rights.ToRead(state), rights.ToClear(state)} {
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
	withdrawGrants, err = testenv.Install(t.Context(), cluster, grantFiles...)
	expect.NoError(t, err)
	mayGrant(true)
	restart(t) // it may remember that it could not
}

// TestUserRoles: users with the viewer role cannot write policies, and users with the editor role
// cannot end a conversion.
func TestUserRoles(t *testing.T) {
	t.Parallel()
	install(t, "rbac/people.yaml")
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.people.example.com"}}
	policy.Spec.Converter.Type = v1alpha1.ConverterNone
	policy.Spec.Paused = true
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
			write := them.Patch(t.Context(), policy.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)), client.DryRunAll)
			end := them.Delete(t.Context(), policy.DeepCopy(), client.DryRunAll)
			status := them.Status().Patch(t.Context(), policy.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"activatedCRD":"b"}}`)), client.DryRunAll)
			got := []bool{look == nil, write == nil, end == nil, status == nil}
			expect.Equal(t, "may look, write, end it, write its status", []bool{may.look, may.write, may.end, false}, got)
		})
	}
}

// TestRepeatedEvents: the manager's rights suffice to count a repeated event.
func TestRepeatedEvents(t *testing.T) {
	t.Parallel()
	api, err := eventsclient.NewForConfig(manager.config)
	expect.NoError(t, err)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api})
	broadcaster.StartRecordingToSink(t.Context().Done())
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(cluster.Scheme(), names.ManagedBy)
	crd := define(t, "repeats.grants.example.com", "v1")
	expect.Eventually(t, "the event is counted", func() (bool, string) {
		recorder.Eventf(crd, nil, corev1.EventTypeNormal, "Repeats", "Repeating", "again")
		list := eventsOf(t, aboutCRD, crd.Name)
		return slices.ContainsFunc(list, func(event eventsv1.Event) bool { return event.Series != nil }), fmt.Sprint(len(list), " events")
	})
}
