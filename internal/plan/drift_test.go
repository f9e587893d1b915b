// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"path"
	"slices"
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

// foreignWrites are those of other clients: each is named, counted and undone.
var foreignWrites = changes{
	"dropped": func(w *world) { w.drop("kubectl-replace") },
	"another webhook": func(w *world) {
		w.change("olm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
	},
	"another caBundle": func(w *world) { w.change("cainjector", inject) },
	"caBundle removed": func(w *world) {
		w.change("kubectl-patch", func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = nil })
	},
	"path removed": func(w *world) {
		w.change("kubectl-patch", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Path = nil })
	},
	"another port": func(w *world) {
		w.change("kubectl-edit", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Port = new(int32(8443)) })
	},
	"an injector": func(w *world) {
		w.observed.CRD.Annotations = map[string]string{injector: "a/b"}
		w.change("cainjector", inject)
	},
	"managedFields stripped, and dropped": func(w *world) {
		w.drop("kubectl-replace")
		w.observed.CRD.ManagedFields = nil
	},
}

// TestDriftIsRepaired: spec.conversion is as it was, after one write.
func TestDriftIsRepaired(t *testing.T) {
	for name, write := range foreignWrites {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			before := w.observed.CRD.DeepCopy()
			write(w)
			w.converge()
			if diff := cmp.Diff(before.Spec.Conversion, w.observed.CRD.Spec.Conversion); diff != "" {
				t.Errorf("after the repair (-want +got):\n%s", diff)
			}
			if got, want := w.observed.CRD.Generation, before.Generation+2; got != want {
				t.Errorf("generation %d, want %d: one foreign write and one of ours", got, want)
			}
			if w.observed.Policy.Status.MigrationEvidence == nil {
				t.Error("the evidence is lost: objects would be migrated again")
			}
		})
	}
}

// dropped is a world in which another client has dropped spec.conversion.
func dropped(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.drop("kubectl-replace")
	return w
}

// repairChanges: one ready pod is enough for a repair, proven or not, whatever rules it serves. If no pod
// could answer, nothing is written.
var repairChanges = changes{
	"all is well":            func(*world) {},
	"one pod, not probed":    func(w *world) { w.observed.Pods = w.observed.Pods[:1]; w.observed.Pods[0].Proof = nil },
	"a pod with an old plan": func(w *world) { w.observed.Pods[0].Revisions = []string{"old"} },
	"broken rules":           func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x" },
	"being deleted, and in use": func(w *world) {
		w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
	},
	"being deleted, and not in use": func(w *world) {
		w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
		w.observed.CRD.Spec.Versions[0].Served = false
	},
	"the CRD is going": func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
	"no pod":           func(w *world) { w.observed.Pods = nil },
	"no authority":     func(w *world) { w.observed.Authority = nil },
	"no certificate":   func(w *world) { w.observed.Certificate = nil },
	"suspended":        func(w *world) { w.observed.Policy.Spec.Suspend = true },
	"only reported":    func(w *world) { w.observed.Policy.Spec.Drift = v1alpha1.DriftReport },
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
		w.loseConversion("helm")
	}
	return w
}

// contestChanges are what ends the standstill, what does not, and who is to end it.
var contestChanges = changes{
	"nothing":       func(*world) {},
	"nine minutes":  func(w *world) { w.observed.Now = w.observed.Now.Add(9 * time.Minute) },
	"ten minutes":   func(w *world) { w.observed.Now = w.observed.Now.Add(10 * time.Minute) },
	"another write": func(w *world) { w.drop("helm"); w.observed.CRD.Generation++ },
	"the spec":      func(w *world) { w.observed.Policy.Generation++ },
	"an injector":   func(w *world) { w.observed.CRD.Annotations = map[string]string{injector: "a/b"} },
	"a release of Helm": func(w *world) {
		w.observed.CRD.Annotations = map[string]string{"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod"}
	},
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
	w.define(bothStoredNew)
	w.reports(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}})
	w.say("A client replaces the CustomResourceDefinition with a manifest that has no spec.conversion.")
	w.loseConversion("kubectl-replace")
	w.say("The migration of the new generation is done.")
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Current: 1000}})
	w.say("An installer points it at its own webhook.")
	w.change("olm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
	w.converge()
}

func driftContested(w *world) {
	w.say("Everything is active.")
	w.activate(bothStoredNew)
	w.say("An injector of caBundle is told to inject, and does not give in.")
	w.observed.CRD.Annotations = map[string]string{injector: "theirs/certificate"}
	for range 6 {
		w.change("cainjector", inject)
		w.converge()
	}
	w.say("Ten minutes later.")
	w.later(10 * time.Minute)
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
	w.activate(bothStoredNew)
	w.say("A client drops spec.conversion.")
	w.loseConversion("kubectl-replace")
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
			w.settleAPIServers()
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
