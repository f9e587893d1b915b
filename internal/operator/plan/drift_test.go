// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"path"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const injector = "cert-manager.io/inject-ca-from"

func inject(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = []byte("theirs") }

// foreignWrites are those of other clients: each is named, counted and undone.
var foreignWrites = changes{
	"dropped": func(w *world) { w.Drop("kubectl-replace") },
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
		w.Drop("kubectl-replace")
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
			expect.Equal(t, "after the repair", before.Spec.Conversion, w.observed.CRD.Spec.Conversion)
			expect.Equal(t, "generation after a foreign write and one of ours", before.Generation+2, w.observed.CRD.Generation)
			expect.Equal(t, "the evidence is lost: objects would be migrated again", false, w.observed.Policy.Status.MigrationEvidence == nil)
		})
	}
}

// dropped is a world in which another client has dropped spec.conversion.
func dropped(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.Drop("kubectl-replace")
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
		w.delete()
	},
	"being deleted, and not in use": func(w *world) {
		w.delete()
		w.observed.CRD.Spec.Versions[0].Served = false
	},
	"the CRD is going": func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
	"no pod":           func(w *world) { w.observed.Pods = nil },
	"no authority":     func(w *world) { w.observed.Authority = nil },
	"no certificate":   func(w *world) { w.observed.Certificate = nil },
	"paused":           func(w *world) { w.observed.Policy.Spec.Paused = true },
	"tolerated":        func(w *world) { w.observed.Policy.Spec.Drift = v1alpha1.DriftTolerate },
}

// TestTwoWriters fights for two hours with a writer that answers each repair at
// once, and counts: never more than five repairs within any ten minutes.
func TestTwoWriters(t *testing.T) {
	w := active(t)
	var repairs []time.Time
	for end := w.observed.Now.Add(2 * time.Hour); w.observed.Now.Before(end); {
		w.Drop("helm")
		decided := w.plan()
		if slices.Contains(kinds(decided.Steps), "SwitchCRD") {
			repairs = append(repairs, w.observed.Now)
		} else if stalled := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.StalledCondition); stalled.Reason != v1alpha1.ReasonContested {
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
	"another write": func(w *world) { w.Drop("helm"); w.observed.CRD.Generation++ },
	"the spec":      func(w *world) { w.observed.Policy.Generation++ },
	"an injector":   func(w *world) { w.observed.CRD.Annotations = map[string]string{injector: "a/b"} },
	"a release of Helm": func(w *world) {
		w.observed.CRD.Annotations = map[string]string{"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod"}
	},
}

// TestARepairIsCountedOnce, however often the write is refused.
func TestARepairIsCountedOnce(t *testing.T) {
	w := active(t)
	w.Drop("helm")
	for range 10 {
		decided := w.plan()
		if !slices.Contains(kinds(decided.Steps), "SwitchCRD") {
			t.Fatalf("it gives up: %v", kinds(decided.Steps))
		}
		w.observed.Policy.Status = decided.Status // and the switch failed
	}
	expect.Equal(t, "repairs counted", 1, len(w.observed.Policy.Status.Drift.Repairs))
}

// TestTakenOver: what another client wrote, but rightly, is ours again with one write.
func TestTakenOver(t *testing.T) {
	w := active(t)
	right := w.observed.CRD.Spec.Conversion.DeepCopy()
	w.Drop("helm")
	w.Write("kubectl-edit", right)
	w.converge()
	expect.Equal(t, "spec.conversion belongs to", names.ManagedBy, w.Owners["strategy"])
	expect.Equal(t, "steps left", nil, kinds(w.plan().Steps))
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
	w.say("With keep-conversion, a client replaces the CustomResourceDefinition while a migration runs: only managedFields change.")
	w.trigger("again")
	for field := range w.Owners {
		w.Owners[field] = "kubectl-replace"
	}
	w.Account("kubectl-replace")
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

func driftTolerated(w *world) {
	w.say("Drift is only to be reported.")
	w.observed.Policy.Spec.Drift = v1alpha1.DriftTolerate
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
	for action, want := range map[v1alpha1.DriftAction]string{v1alpha1.DriftRepair: "new", v1alpha1.DriftTolerate: "old"} {
		t.Run(string(action), func(t *testing.T) {
			w, old := changing(t)
			w.observed.Policy.Spec.Drift = action
			before := w.observed.CRD.Spec.Conversion.DeepCopy()
			w.HoldBack = false
			w.observed.Now = w.observed.Now.Add(10 * time.Second) // pods are refreshed again
			w.converge()
			plans := map[string]string{old: "old", w.wanted: "new"}
			w.Write("argocd-controller", before)
			w.converge()
			w.settleAPIServers()
			named := path.Base(*w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Path)
			expect.Equal(t, "plan that the CustomResourceDefinition names", want, plans[named])
			if carried := w.observed.Pods[0].Revisions; !slices.Contains(carried, named) {
				t.Errorf("pods carry %v, and the CustomResourceDefinition names %s", carried, named)
			}
		})
	}
}

// generatedByCrossplane: Crossplane writes the CustomResourceDefinition from an XRD.
func generatedByCrossplane(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.say("Crossplane generates the CustomResourceDefinition, and the operator has no rights to the XRD.")
	w.applyCRD(bothStoredOld)
	w.generatedFrom(crontabs, "{}")
	w.observed.Composite = nil
	w.observed.CompositeProblem = observed.CompositeProblem{Reason: v1alpha1.ReasonRightsNotGranted, Message: "no rights"}
	w.converge()
	w.say("The XRD is gone.")
	w.observed.CompositeProblem = observed.CompositeProblem{Reason: v1alpha1.ReasonCompositeNotUsable, Message: "no XRD"}
	w.converge()
	w.say("It is back, and has claims.")
	w.observed.CompositeProblem = observed.CompositeProblem{}
	w.generatedFrom(crontabs, "{group: example.com, claimNames: {plural: claims}}")
	w.converge()
	w.say("This is the CustomResourceDefinition of the claims.")
	w.observed.CRD.OwnerReferences[0].Name = "xcrontabs.example.com"
	w.converge()
	w.observed.CRD.OwnerReferences[0].Name = crontabs
	w.say("It has no claims, and an injector is to write caBundle.")
	w.observed.Composite.Spec.ClaimNames = nil
	w.observed.Policy.Spec.Certificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}}
	w.converge()
	w.observed.Policy.Spec.Certificates = v1alpha1.Certificates{}
	w.say("No injector, and another client wrote a webhook to it.")
	w.WriteComposite("kubectl", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter})
	w.converge()
	w.say("It has no webhook. Crossplane does not run.")
	w.WriteComposite("kubectl", nil)
	w.converge()
	w.say("Crossplane continues.")
	w.copy()
	w.say("A Configuration package replaces the XRD without its conversion.")
	w.observed.Composite.OwnerReferences = []metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ConfigurationRevision", Name: "platform", Controller: new(true)}}
	w.WriteComposite("crossplane", nil)
	w.copy()
	w.copy()
	w.say("It does that all the time.")
	for range 6 {
		w.WriteComposite("crossplane", nil)
		w.copy()
		w.copy()
	}
	w.say("It has spec.conversion now, and a client changes that of the CustomResourceDefinition, which Crossplane reverts.")
	w.observed.Policy.Generation++
	w.converge()
	w.copy()
	w.loseConversion("kubectl")
	w.copy()
	w.say("The policy wants another storage version.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.converge()
	w.say("Its author makes that version referenceable.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("A migration is asked for.")
	w.trigger("now")
	w.reports(whole())
	w.say("The previous version is retired.")
	w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementRemove, After: &metav1.Duration{}}}
	w.converge()
	w.say("Its author removes it, and deletes the policy. Crossplane does not run.")
	w.applyCRD(onlyNew)
	w.delete()
	w.converge()
	w.say("Crossplane continues.")
	w.copy()
	w.settleAPIServers()
}

// generatedFrom lets Crossplane write the CustomResourceDefinition from an XRD.
func (w *world) generatedFrom(xrd, spec string) {
	owner := metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: xrd, UID: "uid-of-the-xrd", Controller: new(true)}
	w.observed.CRD.OwnerReferences = []metav1.OwnerReference{owner}
	w.observed.Composite = &crds.Composite{TypeMeta: metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind}, ObjectMeta: metav1.ObjectMeta{Name: xrd, UID: owner.UID}}
	read(w.t, spec, &w.observed.Composite.Spec)
}

// claim adds claims to a kind of which the operator has written the conversion.
func (w *world) claim() {
	w.generatedFrom(crontabs, "{group: example.com, claimNames: {plural: claims}}")
	w.WriteComposite(names.ManagedBy, w.observed.CRD.Spec.Conversion)
}

// ofClaims is a world whose policy is for claims. It neither changes nor removes the conversion, which belongs
// to the policy of the composite resources, although its pods are in a fleet that both may use.
func ofClaims(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.generatedFrom("xcrontabs.example.com", "{group: example.com, claimNames: {plural: crontabs}}")
	w.WriteComposite(names.ManagedBy, w.observed.CRD.Spec.Conversion)
	w.observed.Policy.Status.ActivatedCRD, w.observed.Policy.Status.ActiveRevisions = "", nil
	return w
}

// copy does what Crossplane does in each reconciliation, and lets the world come to rest.
func (w *world) copy() {
	w.t.Helper()
	w.Write("crossplane", w.observed.Composite.Spec.Conversion.DeepCopy())
	w.converge()
}
