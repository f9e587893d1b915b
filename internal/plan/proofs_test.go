// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// TestProofsAreRecalled: a status that was not written is made up for.
func TestProofsAreRecalled(t *testing.T) {
	w := active(t)
	want := w.observed.Policy.Status.Verification.DeepCopy()
	if want == nil || want.Samples == nil || !want.APIServerProbe {
		t.Fatalf("status.verification is %+v once it is active", want)
	}
	w.observed.Policy.Status.Verification = nil
	if diff := cmp.Diff(want, w.plan().Status.Verification); diff != "" {
		t.Errorf("status.verification (-want +got):\n%s", diff)
	}
	w.observed.Samples, w.observed.APIServer = nil, nil
	if got := w.plan().Status.Verification; got != nil {
		t.Errorf("status.verification is %+v where nothing is known", got)
	}
}

// TestRightsToRead are for one resource, and go whatever the gates say.
func TestRightsToRead(t *testing.T) {
	w := active(t)
	w.changeRules("/")
	var granted []*rbacv1apply.ClusterRoleApplyConfiguration
	for range 20 {
		decided := w.plan()
		for _, s := range decided.Steps {
			apply, ok := s.(step.Apply)
			if role, isRole := apply.Object.(*rbacv1apply.ClusterRoleApplyConfiguration); ok && isRole {
				granted = append(granted, role)
			}
			if _, asked := s.(step.TakeSamples); asked {
				checkRoles(t, granted)
				checkTakenAway(t, w)
				return
			}
		}
		w.carryOut(decided)
	}
	t.Fatalf("no samples are taken:\n%s", w.story())
}

func checkRoles(t *testing.T, granted []*rbacv1apply.ClusterRoleApplyConfiguration) {
	t.Helper()
	if len(granted) != 1 {
		t.Fatalf("%d roles are granted, want 1", len(granted))
	}
	want := []rbacv1apply.PolicyRuleApplyConfiguration{{
		APIGroups: []string{"example.com"}, Resources: []string{"crontabs"}, Verbs: []string{"get", "list"}}}
	if diff := cmp.Diff(want, granted[0].Rules); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

// checkTakenAway: a manager that died while it read, and a policy that was broken,
// suspended or deleted since.
func checkTakenAway(t *testing.T, w *world) {
	t.Helper()
	w.observed.ReadRights = true
	for name, change := range map[string]func(){
		"broken":    func() { w.changeRules("") },
		"suspended": func() { w.observed.Policy.Spec.Suspend = true },
	} {
		change()
		if diff := cmp.Diff(true, taken(w.plan().Steps)); diff != "" {
			t.Errorf("%s: the rights stay", name)
		}
	}
	w.observed.Policy.Spec.Suspend = false
	w.observed.Samples = &observed.BackgroundCheck{Subject: "x", Running: true}
	if taken(w.plan().Steps) {
		t.Error("the rights go while objects are read")
	}
}

func taken(steps []step.Step) bool {
	for _, s := range steps {
		if deleted, ok := s.(step.DeleteRights); ok && deleted.Name == names.ReadRights(crontabs) {
			return true
		}
	}
	return false
}

// TestSeveralAPIServers: what a message promises is what was proven.
func TestSeveralAPIServers(t *testing.T) {
	w := active(t)
	condition := conditionOf(w.plan(), v1alpha1.ConversionVerifiedCondition)
	const want = "2 converter pods answered over TLS for 2 version pairs; there are no objects yet for a round trip; verified from one of the API servers"
	if condition.Message != want {
		t.Errorf("message is %q, want %q", condition.Message, want)
	}
}

func conditionOf(decided plan.Plan, kind string) metav1.Condition {
	return *apimeta.FindStatusCondition(decided.Status.Conditions, kind)
}
