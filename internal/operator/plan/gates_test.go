// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// active is a world in which everything is done: two versions, migrated.
func active(t *testing.T) *world {
	t.Helper()
	return activeBy(t, policyYAML)
}

// activeBy is that world with a policy that may bring a converter of the user's.
func activeBy(t *testing.T, policy string) *world {
	t.Helper()
	return from(t, "active: "+policy, func(t *testing.T) *world {
		w := newWorld(t, policy)
		w.answerAt("10.0.0.1:9443", "")
		w.define(bothStoredNew)
		if len(w.observed.Runs) > 0 {
			w.completes(3)
		}
		return w
	})
}

// gateChanges are in a world with rules in which all is done.
func gateChanges() changes {
	all := changes{
		"nothing": func(*world) {},
		"a rule that does not fit": func(w *world) {
			w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".hostAndPort"
		},
		"the CRD is going": func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
		"another webhook, from the beginning": func(w *world) {
			w.observed.Policy.Status.ActivatedCRD = ""
			w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Name = "theirs"
		},
		"the converter of a chart": func(w *world) {
			w.observed.Policy.Status.ActivatedCRD = ""
			w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Name = "theirs"
			w.observed.CRD.Annotations = map[string]string{names.ExportedAnnotation: "conversion-system/theirs"}
		},
		"another webhook than that of a chart": func(w *world) {
			w.observed.Policy.Status.ActivatedCRD = ""
			w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Name = "theirs"
			w.observed.CRD.Annotations = map[string]string{names.ExportedAnnotation: "conversion-system/another"}
		},
		"an injector": func(w *world) {
			w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
		},
		"the authority is gone, and in use":  func(w *world) { w.observed.Authority = nil },
		"authority and certificate are gone": func(w *world) { w.observed.Authority, w.observed.Certificate = nil, nil },
		"an authority that is none":          func(w *world) { w.observed.Authority = &corev1.Secret{} },
		"an expired certificate":             func(w *world) { w.observed.Now = w.observed.Now.Add(certificates.DefaultDuration + time.Hour) },
		"a certificate that is due":          func(w *world) { w.observed.Now = w.observed.Now.Add(certificates.DefaultDuration * 3 / 4) },
		"one pod left":                       func(w *world) { w.observed.Pods = w.observed.Pods[:1] },
		"no pod left":                        func(w *world) { w.observed.Pods, w.observed.PodFailure.Message = nil, "exceeded quota" },
		"no endpoint":                        func(w *world) { w.observed.Endpoints = 0 },
		"a pod that was not probed":          func(w *world) { w.observed.Pods[0].Proof = nil },
		"a pod that failed its probe": func(w *world) {
			w.observed.Pods[1].Proof = &observed.Proof{Reason: "CanaryFailed", Message: "it differs at .host"}
		},
		"the conversion was dropped": func(w *world) { w.Drop("kubectl-replace") },
		"the conversion was dropped while a client migrates": func(w *world) {
			w.Drop("helm")
			w.observed.CRD.Status.Conditions = storageMigrating()
		},
		"another authority": func(w *world) {
			w.change(names.ManagedBy, func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = []byte("x") })
		},
		"objects may be stored elsewhere again": func(w *world) {
			w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
			w.observed.CRD.Generation++
		},
		"storage moved there and back while no one looked": func(w *world) { w.observed.CRD.Generation += 2 },
		"a change that is none of ours":                    func(w *world) { w.observed.CRD.Generation++ },
		"no converter is wanted, while a client migrates": func(w *world) {
			w.applyCRD(equalVersions)
			w.convertBy(noneYAML)
			w.observed.CRD.Status.Conditions = storageMigrating()
		},
		"the same while a client migrates": func(w *world) {
			w.observed.CRD.Generation++
			w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
			w.observed.CRD.Status.Conditions = storageMigrating()
		},
		"the same and the storage version is not served": func(w *world) {
			w.observed.CRD.Generation++
			w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
			w.observed.CRD.Spec.Versions[1].Served = false
		},
		"the same and migration is never wanted": func(w *world) {
			w.observed.CRD.Generation++
			w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
			w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever
		},
		"paused, and nothing refuses large objects": func(w *world) { w.observed.Policy.Spec.Paused, w.observed.Admission = true, nil },
		"paused, and the conversion was dropped": func(w *world) {
			w.observed.Policy.Spec.Paused = true
			w.Drop("helm")
		},
		"a converter of a kind that is not known": func(w *world) { w.observed.Policy.Spec.Converter = v1alpha1.Converter{} },
		"a converter of a kind that is not known, and a run that is asked for": func(w *world) {
			w.observed.Policy.Spec.Converter = v1alpha1.Converter{}
			w.observed.Policy.Spec.Migration.Trigger = "now"
		},
		"failures of a converter that no client calls": func(w *world) {
			w.fail("Panic", "default/a", 1)
			w.observed.CRD.Spec.Conversion = nil
			w.observed.Policy.Status.ActivatedCRD = ""
		},
		"rules that are too large": func(w *world) {
			for i := range w.observed.Revisions {
				w.observed.Revisions[i].Stored = make([]byte, 701<<10)
			}
		},
		"a version is to be deprecated while a client migrates": func(w *world) {
			w.observed.CRD.Status.Conditions = storageMigrating()
			w.retire("v1beta1", v1alpha1.RetirementDeprecate)
		},
	}
	for name, count := range preservedCounts {
		all["a version is to be removed, and "+name] = func(w *world) {
			w.retire("v1beta1", v1alpha1.RetirementRemove)
			w.observed.CRD.Spec.Versions[0].Deprecated = true
			w.observed.Policy.Status.PreservedData = count(v1alpha1.PreservedDataStatus{Complete: true, Ruleset: w.wanted})
		}
	}
	for _, cause := range []v1alpha1.ConversionFailureCause{"AnnotationsTooLarge", "OverBudget", "Truncated", "InvalidJSON", "Panic", "TooSlow", "UnknownVersion", "WrongKind", "Other", "Unheard"} {
		all["conversions fail by "+string(cause)] = func(w *world) { w.fail(cause, "", 1) }
	}
	return all
}

// preservedCounts do not show that a version can be removed, except the last one.
var preservedCounts = map[string]func(v1alpha1.PreservedDataStatus) *v1alpha1.PreservedDataStatus{
	"nothing was counted": func(v1alpha1.PreservedDataStatus) *v1alpha1.PreservedDataStatus { return nil },
	"some objects were counted": func(of v1alpha1.PreservedDataStatus) *v1alpha1.PreservedDataStatus {
		of.Complete = false
		return &of
	},
	"more fields were counted than are listed": func(of v1alpha1.PreservedDataStatus) *v1alpha1.PreservedDataStatus {
		of.Versions = []v1alpha1.PreservedVersion{{Version: "v1beta1", Objects: 2, MoreFields: true}}
		return &of
	},
	"annotations cannot be parsed": func(of v1alpha1.PreservedDataStatus) *v1alpha1.PreservedDataStatus {
		of.Versions = []v1alpha1.PreservedVersion{{Version: "v1beta1", Objects: 2, Unreadable: 2}}
		return &of
	},
	"nothing is preserved": func(of v1alpha1.PreservedDataStatus) *v1alpha1.PreservedDataStatus { return &of },
}

// imageChanges are where an image of the user converts.
var imageChanges = changes{
	"pods on one node":           (*world).crowd,
	"all is well":                func(*world) {},
	"no structure":               func(w *world) { w.observed.CRD.Spec.PreserveUnknownFields = true },
	"one pod left":               func(w *world) { w.observed.Pods = w.observed.Pods[:1] },
	"no endpoint":                func(w *world) { w.observed.PortEndpoints = nil },
	"a warning":                  func(w *world) { w.observed.Pods[1].Proof = &observed.Proof{Warning: ".spec.note is gone"} },
	"the conversion was dropped": func(w *world) { w.Drop("kubectl-replace") },
	"another client converts":    func(w *world) { w.Write("helm", theirs(w.t)) },
	"reviews of another version": func(w *world) {
		w.observed.Policy.Spec.Converter.ConversionReviewVersions = []v1alpha1.ReviewVersion{"v1beta1"}
	},
	"reviews of another version, unproven": func(w *world) {
		w.observed.Policy.Spec.Converter.ConversionReviewVersions = []v1alpha1.ReviewVersion{"v1beta1"}
		w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
	},
	"replacing: image": func(w *world) { w.lie(1) },
	"replacing: a pod that hangs": func(w *world) {
		w.observed.Pods[0].Proof = &observed.Proof{Reason: "Unreachable", Message: "no answer"}
	},
	"replacing: all pods, of an image": func(w *world) { w.lie(0); w.lie(1) },
	"being deleted":                    (*world).delete,
}

// serviceChanges are where a Service of the user converts.
var serviceChanges = changes{
	"all is well":                func(*world) {},
	"another certificate":        func(w *world) { w.answerAt("10.0.0.1:9443", "x509: unknown authority") },
	"not probed":                 func(w *world) { w.observed.External.Endpoints[0].Proof = nil },
	"the conversion was dropped": func(w *world) { w.Drop("kubectl-replace") },
	"the conversion was dropped, and nothing answers": func(w *world) {
		w.Drop("kubectl-replace")
		w.observed.External = observed.External{}
	},
	"another client converts": func(w *world) { w.Write("helm", theirs(w.t)) },
	"claims of Crossplane":    (*world).claim,
	"replacing: a Service":    func(w *world) { w.answerAt("10.0.0.1:9443", "x509: unknown authority") },
	"being deleted":           (*world).delete,
}

// noneChanges are where nothing converts.
var noneChanges = changes{
	"a webhook of a client's": func(w *world) {
		w.applyCRD(equalVersions)
		w.Write("helm", theirs(w.t))
	},
	"a version that is not in use differs": func(w *world) {
		w.observed.CRD.Spec.Versions[0].Served = false
		w.observed.CRD.Status.StoredVersions = []string{"v1"}
	},
	"another storage version, with claims of Crossplane": func(w *world) {
		w.applyCRD(equalVersions)
		w.generatedFrom(crontabs, "{group: example.com, claimNames: {plural: claims}}")
		w.observed.Policy.Spec.StorageVersion = "v1beta1"
	},
	"being deleted": (*world).delete,
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
		expect.Equal(t, "reason of "+gate, v1alpha1.ReasonNotEvaluated, apimeta.FindStatusCondition(conditions, gate).Reason)
	}
}

// TestRenewalIsRemembered: without an event, the manager looks again when a
// certificate is due.
func TestRenewalIsRemembered(t *testing.T) {
	w := active(t)
	leaf, err := pki.ParseCertificate(w.observed.Certificate.Data[corev1.TLSCertKey])
	expect.NoError(t, err)
	want := min(time.Hour, pki.RenewalTime(leaf, certificates.DefaultDuration, 0).Sub(w.observed.Now))
	expect.Equal(t, "looks again after", want, w.plan().RecheckAfter)
}

// renewalDue is a world whose certificate is due.
func renewalDue(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.pass(certificates.DefaultDuration * 3 / 4)
	return w
}

// upkeepChanges: whatever keeps the gates closed, the certificate is renewed.
var upkeepChanges = changes{
	"paused":       func(w *world) { w.observed.Policy.Spec.Paused = true },
	"broken rules": func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x" },
	"an injector": func(w *world) {
		w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
	},
	"being deleted": func(w *world) { w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
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
