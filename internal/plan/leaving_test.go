// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// paired subtrees are two versions that differ in nothing.
var twins = strings.ReplaceAll(bothStoredNew, "hostPort: {type: string}", "host: {type: string}, port: {type: string}")

func withoutRules(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules = nil }

func (w *world) pass(d time.Duration) { w.observed.Now = w.observed.Now.Add(d) }

func (w *world) delete() { w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} }

// TestDeletion: the converter goes only when no object needs it any more.
func TestDeletion(t *testing.T) {
	cases := map[string]struct {
		change  func(*world)
		blocked bool
	}{
		"two versions are served":           {func(*world) {}, true},
		"the storage version is not served": {func(w *world) { w.observed.CRD.Spec.Versions[1].Served = false }, true},
		"the conversion was dropped":        {func(w *world) { w.drop("kubectl-replace") }, true},
		"the old version is not served":     {func(w *world) { w.observed.CRD.Spec.Versions[0].Served = false }, false},
		"the old version is not served, and may be stored": {func(w *world) {
			w.observed.CRD.Spec.Versions[0].Served = false
			w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
		}, true},
		"the old version is not served, and no one looked": {func(w *world) {
			w.observed.CRD.Spec.Versions[0].Served = false
			w.observed.CRD.Generation += 2
		}, true},
		"somebody else converts": {func(w *world) {
			w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
		}, false},
		"the CRD is gone":                 {func(w *world) { w.observed.CRD = nil }, false},
		"the CRD is going":                {func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} }, true},
		"versions that differ in nothing": {func(w *world) { withoutRules(w); w.applyCRD(twins) }, true},
		"versions that differ in nothing, and none is to be restored": {func(w *world) {
			withoutRules(w)
			w.applyCRD(twins)
			w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
		}, false},
		"versions that differ, and none is to be restored": {func(w *world) {
			w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
		}, true},
		"rules that do not fit, and none is to be restored": {func(w *world) {
			w.changeRules("")
			w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
		}, true},
		"it is abandoned": {func(w *world) { w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionAbandon }, false},
		"it is abandoned while the CRD is going": {func(w *world) {
			w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
			w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionAbandon
		}, false},
		"it is abandoned and suspended": {func(w *world) {
			w.observed.Policy.Spec.Suspend = true
			w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionAbandon
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.delete()
			c.change(w)
			decided := w.plan()
			if got := apimeta.IsStatusConditionTrue(decided.Status.Conditions, v1alpha1.DeletionBlockedCondition); got != c.blocked {
				t.Errorf("blocked: %t, want %t", got, c.blocked)
			}
			if c.blocked {
				w.observed.Policy.DeletionTimestamp = nil
				if diff := cmp.Diff(readiness(w.plan()), readiness(decided)); diff != "" {
					t.Errorf("readiness (-of a policy that stays +of one that may not go):\n%s", diff)
				}
			}
			leaves := decided.Status.ConversionRemovedTime != nil ||
				slices.ContainsFunc(kinds(decided.Steps), func(kind string) bool { return kind == "RestoreCRD" || kind == "RemoveFinalizer" })
			if leaves == c.blocked {
				t.Errorf("leaves: %t, want %t: %v", leaves, !c.blocked, kinds(decided.Steps))
			}
		})
	}
}

// readiness is what a plan says of Ready, Reconciling and Stalled.
func readiness(decided plan.Plan) (said []string) {
	for _, name := range summaries {
		condition := apimeta.FindStatusCondition(decided.Status.Conditions, name)
		said = append(said, strings.Join([]string{name, string(condition.Status), condition.Reason, condition.Message}, " "))
	}
	return said
}

// TestAbandonedIsLeftAsItIs: nothing of the converter, and nothing of the
// CustomResourceDefinition, also where a client has changed that.
func TestAbandonedIsLeftAsItIs(t *testing.T) {
	w := active(t)
	w.observed.Runs = nil
	w.drop("kubectl-replace")
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionAbandon
	w.delete()
	if got := kinds(w.plan().Steps); !slices.Equal(got, []string{"RemoveFinalizer"}) {
		t.Errorf("steps are %v, want RemoveFinalizer and no other", got)
	}
}

// TestPodsOutliveTheConversion: from the moment that the CustomResourceDefinition
// is seen to do without them, for as long as API servers may not have seen it.
func TestPodsOutliveTheConversion(t *testing.T) {
	w := active(t)
	w.applyCRD(onlyNew)
	w.delete()
	w.converge()
	if w.observed.Pods == nil || w.observed.CRD.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Fatalf("after the restoration there are %d pods, and the strategy is %s", len(w.observed.Pods), w.observed.CRD.Spec.Conversion.Strategy)
	}
	if after := w.plan().RecheckAfter; after <= 0 || after > w.observed.Settings.PropagationDelay {
		t.Errorf("looks again after %s, want within %s", after, w.observed.Settings.PropagationDelay)
	}
	w.applyCRD(bothStoredNew)
	w.converge()
	if released := w.observed.Policy.Status.ConversionRemovedTime; released != nil || !activeHere(w) {
		t.Fatalf("a version came back; released %v, active %t", released, activeHere(w))
	}
	w.applyCRD(onlyNew)
	w.converge()
	w.pass(w.observed.Settings.PropagationDelay)
	w.converge()
	if w.observed.Pods != nil || w.observed.Policy.Finalizers != nil {
		t.Errorf("%d pods and the finalizers %v are left", len(w.observed.Pods), w.observed.Policy.Finalizers)
	}
}

func activeHere(w *world) bool {
	return w.observed.CRD.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func deletionBlocked(w *world) {
	w.say("Everything is active; the old version is still stored.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The policy is deleted.")
	w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
	w.converge()
	w.say("The old version is no longer served.")
	w.observed.CRD.Spec.Versions[0].Served = false
	w.observed.CRD.Generation++
	w.converge()
	w.say("A client prunes storedVersions by hand, which proves nothing.")
	w.observed.CRD.Status.StoredVersions = []string{"v1"}
	w.converge()
	w.say("The old version is removed.")
	w.applyCRD(onlyNew)
	w.converge()
	w.say("API servers have had their time.")
	w.pass(w.observed.Settings.PropagationDelay)
	w.converge()
}

func restored(w *world) {
	w.say("Two versions that differ in nothing, and a policy without rules.")
	withoutRules(w)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(twins)
	w.converge()
	w.say("The policy is deleted.")
	w.delete()
	w.converge()
	w.say("Strategy None would give the same, and is to be restored.")
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
	w.converge()
	w.say("API servers have had their time.")
	w.pass(w.observed.Settings.PropagationDelay)
	w.converge()
}

func abandoned(w *world) {
	w.say("Everything is active, and a migration runs.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The policy is deleted, which is blocked.")
	w.delete()
	w.converge()
	w.say("It is to be abandoned.")
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionAbandon
	w.converge()
	w.say("The policy is created again, and takes over what is there: no write of the CustomResourceDefinition, no new pods.")
	w.observed.Policy = newWorld(w.t, policyYAML).observed.Policy
	w.converge()
}

func recreatedCRD(w *world) {
	w.say("Everything is active, and a migration has proven that all is stored at v1.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 3}})
	w.converge()
	w.say("The CustomResourceDefinition is being deleted: to list its objects takes the converter.")
	w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
	w.converge()
	w.say("It is gone.")
	w.observed.CRD = nil
	w.converge()
	w.say("It is created again. It is another one: nothing is known of its objects.")
	w.applyCRD(bothStoredNew)
	w.observed.CRD.UID, w.owners = "another", nil
	w.converge()
}

// loseNamespace takes everything that is in the operator's namespace.
func (w *world) loseNamespace() {
	lost := &w.observed
	lost.Authority, lost.Certificate, lost.Pods, lost.Revisions, lost.Runs, lost.Endpoints = nil, nil, nil, nil, nil, 0
}

func namespaceDeleted(w *world) {
	w.say("Everything is active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The operator's namespace is deleted, and with it operator and converter. Both are installed again.")
	w.loseNamespace()
	w.converge()
}

func moved(w *world) {
	w.say("Everything is active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The operator is installed in another namespace, and no more in the first.")
	w.loseNamespace()
	w.observed.Settings.Namespace = "elsewhere"
	w.converge()
}
