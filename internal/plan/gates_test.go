// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// active is a world in which everything is done: two versions, migrated.
func active(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.applyCRD(bothStoredNew)
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 3}})
	w.converge()
	return w
}

// TestGates changes one thing in a world where all is done, and looks at what
// the gates say and at what is to be done; applying what is there already aside.
func TestGates(t *testing.T) {
	cases := map[string]struct {
		change    func(*world)
		condition string
		status    metav1.ConditionStatus
		reason    string
		message   string
		steps     []string
	}{
		"nothing": {
			func(*world) {},
			v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "", nil,
		},
		"a rule that does not fit": {
			func(w *world) {
				w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".hostAndPort"
			},
			v1alpha1.RulesValidCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidRules, "spokes[0].rules[0].format.from", nil,
		},
		"the CRD is going": {
			func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
			v1alpha1.ConversionConfiguredCondition, metav1.ConditionUnknown, v1alpha1.ReasonCRDTerminating, "until it is gone", nil,
		},
		"another webhook, from the beginning": {
			func(w *world) {
				w.observed.Policy.Status.ActivatedCRD = ""
				w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Name = "theirs"
			},
			v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignWebhook, "conversion-system/theirs", nil,
		},
		"an injector": {
			func(w *world) {
				w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
			},
			v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignInjector, "cert-manager.io/inject-ca-from", nil,
		},
		"the authority is gone, and in use": {
			func(w *world) { w.observed.Authority = nil },
			v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIssuing, "", []string{"IssueAuthority"},
		},
		"authority and certificate are gone": {
			func(w *world) { w.observed.Authority, w.observed.Certificate = nil, nil },
			v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIssuing, "", []string{"IssueAuthority"},
		},
		"an authority that is none": {
			func(w *world) { w.observed.Authority = &corev1.Secret{} },
			v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIssuing, "", []string{"IssueAuthority"},
		},
		"an expired certificate": {
			func(w *world) { w.observed.Now = w.observed.Now.Add(certificates.DefaultDuration + time.Hour) },
			v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIssuing, "", []string{"WriteCertificate"},
		},
		"a certificate that is due": {
			func(w *world) { w.observed.Now = w.observed.Now.Add(certificates.DefaultDuration * 3 / 4) },
			v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "", []string{"WriteCertificate"},
		},
		"one pod left": {
			func(w *world) { w.observed.Pods = w.observed.Pods[:1] },
			v1alpha1.WebhookAvailableCondition, metav1.ConditionTrue, v1alpha1.ReasonSomePodsReady, "1 of 2", nil,
		},
		"no pod left": {
			func(w *world) { w.observed.Pods, w.observed.PodFailure.Message = nil, "exceeded quota" },
			v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonNoPodsReady, "exceeded quota", nil,
		},
		"no endpoint": {
			func(w *world) { w.observed.Endpoints = 0 },
			v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonWaitingForEndpoints, "no ready endpoint", nil,
		},
		"a pod that was not probed": {
			func(w *world) { w.observed.Pods[0].Proof = nil },
			v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, v1alpha1.ReasonProbing, "converter-0", nil,
		},
		"a pod that failed its probe": {
			func(w *world) {
				w.observed.Pods[1].Proof = &observed.Proof{Reason: "CanaryFailed", Message: "it differs at .host"}
			},
			v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, "CanaryFailed", "converter-1: it differs at .host; it serves traffic", []string{"EvictPod"},
		},
		"the conversion was dropped": {
			func(w *world) { w.drop("kubectl-replace") },
			v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonConversionDrifted, `"kubectl-replace"`, []string{"RecordDrift", "SwitchCRD"},
		},
		"the conversion was dropped while a client migrates": {
			func(w *world) {
				w.drop("helm")
				w.observed.CRD.Status.Conditions = storageMigrating()
			},
			v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonConversionDrifted, `"helm"`, []string{"RecordDrift", "SwitchCRD"},
		},
		"another authority": {
			func(w *world) {
				w.change(names.ManagedBy, func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = []byte("x") })
			},
			v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonConfiguring, "", []string{"SwitchCRD"},
		},
		"objects may be stored elsewhere again": {
			func(w *world) {
				w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
				w.observed.CRD.Generation++
			},
			v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating, "", []string{"Create"},
		},
		"storage moved there and back while no one looked": {
			func(w *world) { w.observed.CRD.Generation += 2 },
			v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating, "", []string{"Create"},
		},
		"a change that is none of ours": {
			func(w *world) { w.observed.CRD.Generation++ },
			v1alpha1.StorageMigratedCondition, metav1.ConditionTrue, v1alpha1.ReasonMigrated, "", nil,
		},
		"the same while a client migrates": {
			func(w *world) {
				w.observed.CRD.Generation++
				w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
				w.observed.CRD.Status.Conditions = storageMigrating()
			},
			v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonForeignStorageMigration, "", nil,
		},
		"the same and the storage version is not served": {
			func(w *world) {
				w.observed.CRD.Generation++
				w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
				w.observed.CRD.Spec.Versions[1].Served = false
			},
			v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonStorageVersionNotServed, "served: true", nil,
		},
		"the same and migration is never wanted": {
			func(w *world) {
				w.observed.CRD.Generation++
				w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
				w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever
			},
			v1alpha1.StorageMigratedCondition, metav1.ConditionUnknown, v1alpha1.ReasonNotRequested, "Never", nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			c.change(w)
			decided := w.plan()
			condition := apimeta.FindStatusCondition(decided.Status.Conditions, c.condition)
			if condition.Status != c.status || condition.Reason != c.reason || !strings.Contains(condition.Message, c.message) {
				t.Errorf("%s is %s %s: %s; want %s %s with %q", c.condition, condition.Status, condition.Reason, condition.Message, c.status, c.reason, c.message)
			}
			if diff := cmp.Diff(c.steps, kinds(decided.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func storageMigrating() []apiextensionsv1.CustomResourceDefinitionCondition {
	return []apiextensionsv1.CustomResourceDefinitionCondition{{Type: "StorageMigrating", Status: apiextensionsv1.ConditionTrue}}
}

// kinds are the kinds of the steps, without those that apply what may be there,
// and those that only say something.
func kinds(steps []step.Step) []string {
	var kinds []string
	for _, s := range steps {
		switch s.(type) {
		case step.Apply, step.Warn:
		default:
			kinds = append(kinds, reflect.TypeOf(s).Name())
		}
	}
	return kinds
}

// TestNothingElseIsSaidOfGatesBehind: a gate that stops keeps those behind it closed.
func TestNothingElseIsSaidOfGatesBehind(t *testing.T) {
	w := active(t)
	w.observed.Authority, w.observed.Certificate = nil, nil
	conditions := w.plan().Status.Conditions
	stopped := slices.Index(v1alpha1.Gates, v1alpha1.CertificatesReadyCondition)
	for _, gate := range v1alpha1.Gates[stopped+1:] {
		if condition := apimeta.FindStatusCondition(conditions, gate); condition.Reason != v1alpha1.ReasonNotEvaluated {
			t.Errorf("%s is %s %s, want NotEvaluated", gate, condition.Status, condition.Reason)
		}
	}
}

// TestRenewalIsRemembered: without an event, the manager looks again when a
// certificate is due.
func TestRenewalIsRemembered(t *testing.T) {
	w := active(t)
	leaf, err := pki.ParseCertificate(w.observed.Certificate.Data[corev1.TLSCertKey])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.plan().RecheckAfter, min(time.Hour, pki.RenewalTime(leaf, certificates.DefaultDuration, 0).Sub(w.observed.Now)); got != want {
		t.Errorf("looks again after %s, want %s", got, want)
	}
}

// TestAFixedPoint: where everything is done, nothing but applying is left, and
// the status stays unchanged.
func TestAFixedPoint(t *testing.T) {
	w := active(t)
	before := w.observed.Policy.Status
	decided := w.plan()
	if diff := cmp.Diff(before, decided.Status); diff != "" {
		t.Errorf("the status changed (-before +after):\n%s", diff)
	}
	if left := kinds(decided.Steps); left != nil {
		t.Errorf("steps are left: %v", left)
	}
}

// TestUpkeep: what already serves is kept alive whatever keeps the gates closed.
func TestUpkeep(t *testing.T) {
	closed := map[string]func(*world){
		"suspended":    func(w *world) { w.observed.Policy.Spec.Suspend = true },
		"broken rules": func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x" },
		"an injector": func(w *world) {
			w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
		},
		"being deleted": func(w *world) { w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
	}
	for name, shut := range closed {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			shut(w)
			w.observed.Now = w.observed.Now.Add(certificates.DefaultDuration * 3 / 4)
			if got := kinds(w.plan().Steps); !slices.Contains(got, "WriteCertificate") {
				t.Errorf("the certificate is due and not renewed: %v", got)
			}
		})
	}
}

// TestBrokenRulesKeepTheConverter: an edit that breaks the rules leaves the
// converter with the previous plan, and keeps it there.
func TestBrokenRulesKeepTheConverter(t *testing.T) {
	w := active(t)
	hash := w.wanted
	w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x"
	w.observed.Pods = nil
	w.converge()
	if len(w.observed.Pods) != 2 || !slices.Equal(w.observed.Pods[0].Revisions, []string{hash}) {
		t.Errorf("pods are %v, want two with plan %s", w.observed.Pods, hash)
	}
}

// TestRunsAreGuarded: a run must not write while nothing converts.
func TestRunsAreGuarded(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		first  step.Step
	}{
		"conversion dropped, the generation not seen yet": {
			func(w *world) { w.drop("kubectl-replace"); w.observed.CRD.Generation-- }, step.SuspendRun{Suspend: true}},
		"caBundle changed, the generation not seen yet": {
			func(w *world) {
				w.change("cainjector", func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = []byte("x") })
				w.observed.CRD.Generation--
			}, step.SuspendRun{Suspend: true}},
		"a pod answers wrongly": {
			func(w *world) {
				w.observed.Pods[0].Proof = &observed.Proof{Reason: "CanaryFailed", Message: "it differs"}
			}, step.SuspendRun{Suspend: true}},
		"another webhook, no pod": {
			func(w *world) {
				w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
				w.observed.Pods = nil
			}, step.DeleteRun{}},
		"broken rules and a change": {
			func(w *world) {
				w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x"
				w.observed.CRD.Generation++
			}, step.DeleteRun{}},
		"recreated": {
			func(w *world) { w.observed.CRD.UID = "another" }, step.DeleteRun{}},
		"gone": {
			func(w *world) { w.observed.CRD = nil }, step.DeleteRun{}},
		"never": {
			func(w *world) { w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever }, step.DeleteRun{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.applyCRD(bothStoredNew)
			w.converge()
			w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 3, Rewritten: 1}})
			w.converge()
			c.change(w)
			steps := w.plan().Steps
			if len(steps) == 0 || reflect.TypeOf(steps[0]) != reflect.TypeOf(c.first) {
				t.Errorf("first of all is %v, want %T", kinds(steps), c.first)
			}
		})
	}
}
