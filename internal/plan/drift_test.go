// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"path"
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
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

const injector = "cert-manager.io/inject-ca-from"

func inject(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = []byte("theirs") }

// TestDriftIsRepaired: the client that writes what, it is named, counted and undone.
func TestDriftIsRepaired(t *testing.T) {
	cases := map[string]struct {
		foreign func(*world)
		message string
	}{
		"dropped": {func(w *world) { w.drop("kubectl-replace") },
			`field manager "kubectl-replace" set spec.conversion of the CustomResourceDefinition to strategy None`},
		"another webhook": {func(w *world) {
			w.change("olm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
		}, `field manager "olm" pointed spec.conversion of the CustomResourceDefinition at the Service conversion-system/theirs`},
		"another caBundle": {func(w *world) { w.change("cainjector", inject) },
			`field manager "cainjector" changed caBundle in spec.conversion`},
		"caBundle removed": {func(w *world) {
			w.change("kubectl-patch", func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = nil })
		}, "an unknown field manager changed caBundle"},
		"path removed": {func(w *world) {
			w.change("kubectl-patch", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Path = nil })
		}, "an unknown field manager changed spec.conversion"},
		"another port": {func(w *world) {
			w.change("kubectl-edit", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Port = new(int32(8443)) })
		}, `field manager "kubectl-edit" changed spec.conversion`},
		"an injector": {func(w *world) {
			w.observed.CRD.Annotations = map[string]string{injector: "a/b"}
			w.change("cainjector", inject)
		}, `field manager "cainjector" changed caBundle in spec.conversion`},
		"managedFields stripped, and dropped": {func(w *world) {
			w.drop("kubectl-replace")
			w.observed.CRD.ManagedFields = nil
		}, "an unknown field manager set spec.conversion"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			before := w.observed.CRD.DeepCopy()
			c.foreign(w)
			decided := w.plan()
			if diff := cmp.Diff([]string{"RecordDrift", "SwitchCRD"}, kinds(decided.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			condition := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.ConversionConfiguredCondition)
			if condition.Reason != v1alpha1.ReasonConversionDrifted || !strings.HasPrefix(condition.Message, c.message) {
				t.Errorf("the condition is %s %s: %s; want %q", condition.Status, condition.Reason, condition.Message, c.message)
			}
			w.converge()
			if diff := cmp.Diff(before.Spec.Conversion, w.observed.CRD.Spec.Conversion); diff != "" {
				t.Errorf("after the repair (-want +got):\n%s", diff)
			}
			if got, want := w.observed.CRD.Generation, before.Generation+2; got != want {
				t.Errorf("generation %d, want %d: one foreign write and one of ours", got, want)
			}
			if evidence := w.observed.Policy.Status.MigrationEvidence; evidence == nil {
				t.Error("the evidence is lost: objects would be migrated again")
			}
		})
	}
}

// TestDriftIsUndoneByOnePod: one ready pod is enough, proven or not, whatever
// plan it serves; where no one could answer, nothing is written.
func TestDriftIsUndoneByOnePod(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		want   bool
	}{
		"all is well":            {func(*world) {}, true},
		"one pod, not probed":    {func(w *world) { w.observed.Pods = w.observed.Pods[:1]; w.observed.Pods[0].Proof = nil }, true},
		"a pod with an old plan": {func(w *world) { w.observed.Pods[0].Revisions = []string{"old"} }, true},
		"broken rules":           {func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x" }, true},
		"being deleted, and in use": {func(w *world) {
			w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
		}, true},
		"being deleted, and not in use": {func(w *world) {
			w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
			w.observed.CRD.Spec.Versions[0].Served = false
		}, false},
		"the CRD is going": {func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} }, false},
		"no pod":           {func(w *world) { w.observed.Pods = nil }, false},
		"no authority":     {func(w *world) { w.observed.Authority = nil }, true},
		"no certificate":   {func(w *world) { w.observed.Certificate = nil }, false},
		"suspended":        {func(w *world) { w.observed.Policy.Spec.Suspend = true }, false},
		"only reported":    {func(w *world) { w.observed.Policy.Spec.Drift = v1alpha1.DriftReport }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.drop("kubectl-replace")
			c.change(w)
			if got := slices.Contains(kinds(w.plan().Steps), "SwitchCRD"); got != c.want {
				t.Errorf("switches the CustomResourceDefinition: %t, want %t", got, c.want)
			}
		})
	}
}

// TestTwoWriters fights for two hours with a writer that answers each repair at
// once, and counts: never more than five repairs within any ten minutes.
func TestTwoWriters(t *testing.T) {
	w := active(t)
	var repairs []time.Time
	for end := w.observed.Now.Add(2 * time.Hour); w.observed.Now.Before(end); {
		w.drop("helm")
		decided := w.plan()
		if slices.Contains(kinds(decided.Steps), "SwitchCRD") {
			repairs = append(repairs, w.observed.Now)
		} else if stalled := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.StalledCondition); stalled.Reason != v1alpha1.ReasonConversionContested {
			t.Fatalf("Stalled is %s %s: %s", stalled.Status, stalled.Reason, stalled.Message)
		}
		w.carryOut(decided)
		w.observed.Now = w.observed.Now.Add(10 * time.Second)
	}
	if len(repairs) < 50 || len(repairs) > 65 {
		t.Errorf("%d repairs in two hours, want about 60: five within ten minutes", len(repairs))
	}
	for i := 5; i < len(repairs); i++ {
		if within := repairs[i].Sub(repairs[i-5]); within < 10*time.Minute {
			t.Errorf("repairs %d to %d are within %s", i-5, i, within)
		}
	}
}

// contested is a world in which a writer has used up the budget.
func contested(t *testing.T) *world {
	t.Helper()
	w := active(t)
	for range 6 {
		w.drop("helm")
		w.converge()
	}
	return w
}

// TestContested: what ends the standstill, and what does not.
func TestContested(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		want   bool
	}{
		"nothing":       {func(*world) {}, false},
		"nine minutes":  {func(w *world) { w.observed.Now = w.observed.Now.Add(9 * time.Minute) }, false},
		"ten minutes":   {func(w *world) { w.observed.Now = w.observed.Now.Add(10 * time.Minute) }, true},
		"another write": {func(w *world) { w.drop("helm"); w.observed.CRD.Generation++ }, false},
		"the spec":      {func(w *world) { w.observed.Policy.Generation++ }, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := contested(t)
			c.change(w)
			decided := w.plan()
			if got := slices.Contains(kinds(decided.Steps), "SwitchCRD"); got != c.want {
				t.Errorf("repairs: %t, want %t", got, c.want)
			}
			if after := decided.RecheckAfter; !c.want && (after <= 0 || after > 10*time.Minute) {
				t.Errorf("looks again after %s, want within ten minutes", after)
			}
		})
	}
}

// TestContestedNamesTheCure: an injector is stopped by its annotation.
func TestContestedNamesTheCure(t *testing.T) {
	for cure, annotations := range map[string]map[string]string{
		"make that writer omit spec.conversion": nil,
		"remove the annotation " + injector:     {injector: "a/b"},
	} {
		w := contested(t)
		w.observed.CRD.Annotations = annotations
		stalled := apimeta.FindStatusCondition(w.plan().Status.Conditions, v1alpha1.StalledCondition)
		if stalled.Reason != v1alpha1.ReasonConversionContested || !strings.Contains(stalled.Message, cure) || !strings.Contains(stalled.Message, `"helm"`) {
			t.Errorf("Stalled is %s: %s; want %q", stalled.Reason, stalled.Message, cure)
		}
	}
}

// TestARepairIsCountedOnce, however often the write is refused.
func TestARepairIsCountedOnce(t *testing.T) {
	w := active(t)
	w.drop("helm")
	for range 10 {
		decided := w.plan()
		if !slices.Contains(kinds(decided.Steps), "SwitchCRD") {
			t.Fatalf("it gives up: %v", kinds(decided.Steps))
		}
		w.observed.Policy.Status = decided.Status // and the switch failed
	}
	if got := len(w.observed.Policy.Status.Drift.Repairs); got != 1 {
		t.Errorf("%d repairs counted, want 1", got)
	}
}

// TestTakenOver: what another client wrote, but rightly, is ours again with one write.
func TestTakenOver(t *testing.T) {
	w := active(t)
	right := w.observed.CRD.Spec.Conversion.DeepCopy()
	w.drop("helm")
	w.write("kubectl-edit", right)
	w.converge()
	if got := w.owners["strategy"]; got != names.ManagedBy {
		t.Errorf("spec.conversion belongs to %q", got)
	}
	if left := kinds(w.plan().Steps); left != nil {
		t.Errorf("steps are left: %v", left)
	}
}

func driftRepaired(w *world) {
	w.say("Everything is active, and a migration runs.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}})
	w.converge()
	w.say("A client replaces the CustomResourceDefinition with a manifest that has no spec.conversion.")
	w.drop("kubectl-replace")
	w.converge()
	w.say("The migration of the new generation is done.")
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Current: 1000}})
	w.converge()
	w.say("An installer points it at its own webhook.")
	w.change("olm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
	w.converge()
}

func driftContested(w *world) {
	w.say("Everything is active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("An injector of caBundle is told to inject, and does not give in.")
	w.observed.CRD.Annotations = map[string]string{injector: "theirs/certificate"}
	for range 6 {
		w.change("cainjector", inject)
		w.converge()
	}
	w.say("Ten minutes later.")
	w.observed.Now = w.observed.Now.Add(10 * time.Minute)
	w.converge()
	w.say("It injects again. Then a client removes the annotation, and touches the policy.")
	w.change("cainjector", inject)
	w.converge()
	w.observed.CRD.Annotations = nil
	w.observed.Policy.Generation++
	w.converge()
}

func driftReported(w *world) {
	w.say("Drift is only to be reported.")
	w.observed.Policy.Spec.Drift = v1alpha1.DriftReport
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("A client drops spec.conversion.")
	w.drop("kubectl-replace")
	w.converge()
	w.say("It is to be repaired.")
	w.observed.Policy.Spec.Drift = v1alpha1.DriftRepair
	w.observed.Policy.Generation++
	w.converge()
}

// TestAnOldPlanIsDriftToo: a client writes spec.conversion as it was before the
// rules changed. Pods still have that plan, so that it works, and is not what is wanted.
func TestAnOldPlanIsDriftToo(t *testing.T) {
	for action, want := range map[v1alpha1.DriftAction]string{v1alpha1.DriftRepair: "new", v1alpha1.DriftReport: "old"} {
		t.Run(string(action), func(t *testing.T) {
			w, old := changing(t)
			w.observed.Policy.Spec.Drift = action
			before := w.observed.CRD.Spec.Conversion.DeepCopy()
			w.holdBack = false
			w.observed.Now = w.observed.Now.Add(10 * time.Second) // pods are refreshed again
			w.converge()
			plans := map[string]string{old: "old", w.wanted: "new"}
			w.write("argocd-controller", before)
			w.converge()
			w.observed.Now = w.observed.Now.Add(w.observed.Settings.PropagationDelay)
			w.converge()
			named := path.Base(*w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path)
			if plans[named] != want {
				t.Errorf("the CustomResourceDefinition names the %s plan, want the %s one", plans[named], want)
			}
			if carried := w.observed.Pods[0].Revisions; !slices.Contains(carried, named) {
				t.Errorf("pods carry %v, and the CustomResourceDefinition names %s", carried, named)
			}
		})
	}
}

// TestSuspendedDriftIsReported, and not undone.
func TestSuspendedDriftIsReported(t *testing.T) {
	w := active(t)
	w.observed.Policy.Spec.Suspend = true
	w.drop("helm")
	condition := apimeta.FindStatusCondition(w.plan().Status.Conditions, v1alpha1.ConversionConfiguredCondition)
	if condition.Reason != v1alpha1.ReasonConversionDrifted || !strings.Contains(condition.Message, `"helm"`) ||
		!strings.Contains(condition.Message, "spec.suspend is true") {
		t.Errorf("the condition is %s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
}
