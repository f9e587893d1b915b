// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// tellAdmission tells by which rulesets API servers ask about sizes.
func (w *world) tellAdmission() {
	w.t.Helper()
	var hashes []string
	for _, webhook := range w.observed.Admission.Webhooks {
		hash, _, _ := strings.Cut(webhook.Name, ".")
		hashes = append(hashes, names.RevisionIn(hash, names.FleetOf(webhook.ClientConfig.Service.Name)))
	}
	w.expectWebhooks()
	w.tell("  API servers ask about sizes: %s", w.inOrder(slices.Compact(hashes)))
}

// sizeAdmission makes API servers refuse what is too large before anything may be
// truncated, for as long as anything may.
func sizeAdmission(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.say("API servers are to refuse what is too large, before the CustomResourceDefinition is written.")
	w.define(bothStoredOld)
	w.say("A client deletes the webhook configuration.")
	w.observed.Admission = nil
	w.converge()
	w.say("A client lets API servers ignore it, again and again.")
	for range 3 {
		w.later(5 * time.Second)
		w.ignoreAdmission()
		w.converge()
	}
	w.say("The rules change: API servers ask by both.")
	w.useRules("/")
	w.say("API servers have had their time.")
	w.settleAPIServers()
	w.say("Another authority is asked for: it is trusted here and there.")
	w.observed.Policy.Spec.Certificates = selfManaged("the key was seen")
	w.converge()
	w.settleAPIServers()
	w.settleAPIServers()
	w.say("A client drops the conversion.")
	w.loseConversion("kubectl-replace")
	w.say("The storage version is to change: from now on writes at both versions may be converted.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.converge()
	w.say("The policy prefers to lose what has no room: readers may have truncated forms, which are refused.")
	w.observed.Policy.Spec.Converter.Declarative.Overflow = v1alpha1.OverflowDrop
	w.converge()
	w.settleAPIServers()
	w.say("The operator may not write webhook configurations any more: nothing is truncated.")
	w.observed.Settings.SizeAdmission = false
	w.observed.Policy.Spec.Converter.Declarative.Overflow = ""
	w.converge()
	w.settleAPIServers()
}

// ignoreAdmission is what a client writes who wants to be rid of it.
func (w *world) ignoreAdmission() {
	w.observed.Admission = w.observed.Admission.DeepCopy()
	for i := range w.observed.Admission.Webhooks {
		w.observed.Admission.Webhooks[i].FailurePolicy = new(admissionregistrationv1.Ignore)
	}
}

// shorteningOf is what the wanted ruleset may truncate.
func shorteningOf(t *testing.T, decided plan.Plan) *conversion.Truncating {
	t.Helper()
	for _, s := range decided.Steps {
		if apply, is := s.(step.Apply); is {
			wanted := decided.Status.Revision
			if stored, is := apply.Object.(*corev1apply.ConfigMapApplyConfiguration); is && len(stored.BinaryData) > 0 {
				rules, err := conversion.LoadStored(wanted, stored.BinaryData[conversion.StoredName(names.Child(crontabs), wanted)])
				expect.NoError(t, err)
				return rules.Truncating
			}
		}
	}
	t.Fatal("no ruleset is stored")
	return nil
}

// TestNoSizeAdmission: without the setting nothing is asked, and nothing is truncated.
// What was truncated before is refused by converters.
func TestNoSizeAdmission(t *testing.T) {
	w := active(t)
	before := shorteningOf(t, w.plan())
	if before.RefuseOnly || w.observed.Admission == nil {
		t.Fatalf("by default: %+v", before)
	}
	w.observed.Settings.SizeAdmission = false
	w.converge()
	expect.Equal(t, "API servers, which may still truncate, ask", true, w.observed.Admission != nil)
	if after := shorteningOf(t, w.plan()); !after.RefuseOnly || after.Key != before.Key {
		t.Errorf("it may truncate, or does not know what was truncated: %+v, before %+v", after, before)
	}
	w.settleAPIServers()
	expect.Equal(t, "API servers are told to ask", false, w.observed.Admission != nil)

	w = newWorld(t, policyYAML)
	w.observed.Settings.SizeAdmission = false
	w.define(bothStoredOld)
	if w.observed.Admission != nil || strings.Contains(w.log.String(), "about sizes") {
		t.Error("API servers are told to ask from the beginning")
	}
}

// TestNothingToRefuse: where nothing is preserved, whatever objects hold, API servers
// are not told to ask.
func TestNothingToRefuse(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules = nil
	w.define(strings.ReplaceAll(bothStoredOld, "hostPort: {type: string}", "host: {type: string}, port: {type: string}"))
	if !apimeta.IsStatusConditionTrue(w.observed.Policy.Status.Conditions, v1alpha1.ConversionConfiguredCondition) {
		t.Fatalf("it is not active:\n%s", w.story())
	}
	expect.Equal(t, "API servers are told to ask", false, w.observed.Admission != nil)
}

// TestWritesNeedNoConverter: no write at the storage version waits for a converter,
// unless the object says that it was truncated. A write that is converted may store a
// truncated form, and so is refused where no one could be asked; before the storage
// version changes, that is any.
func TestWritesNeedNoConverter(t *testing.T) {
	w := active(t)
	fail := func(fails ...string) {
		t.Helper()
		var got []string
		for _, webhook := range w.observed.Admission.Webhooks {
			_, asks, _ := strings.Cut(webhook.Name, ".")
			if *webhook.FailurePolicy == admissionregistrationv1.Fail {
				got = append(got, asks+" "+strings.Join(webhook.Rules[0].APIVersions, ","))
			}
		}
		expect.Equal(t, "writes that fail without a converter", fails, got)
	}
	fail("truncated.conversion-operator.io v1beta1,v1", "size.conversion-operator.io v1beta1")
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	for stored := ""; stored != "v1beta1"; stored = crds.StorageVersion(w.observed.CRD) {
		w.observed.Now = w.observed.Now.Add(time.Second)
		decided := w.plan()
		if slices.ContainsFunc(decided.Steps, func(s step.Step) bool { _, edits := s.(step.EditVersions); return edits }) {
			fail("truncated.conversion-operator.io v1beta1,v1", "size.conversion-operator.io v1beta1,v1")
			if since, err := time.Parse(time.RFC3339, w.admittedSince()); err != nil || w.observed.Now.Sub(since) < 10*time.Second {
				t.Errorf("the storage version changes at %s, and API servers were told %s", w.observed.Now, since)
			}
		}
		w.carryOut(decided)
	}
	w.converge()
	fail("truncated.conversion-operator.io v1beta1,v1", "size.conversion-operator.io v1")
}

func (w *world) admittedSince() string {
	_, since, _ := strings.Cut(w.observed.Admission.Annotations["conversion-operator.io/since"], " ")
	return since
}

// TestAdmissionTrustsWhatPodsServe: whatever keeps the gates closed, API servers verify
// pods by the same authorities for admission as for conversion.
func TestAdmissionTrustsWhatPodsServe(t *testing.T) {
	for name, shut := range map[string]func(*world){
		"open":         func(*world) {},
		"broken rules": func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x" },
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			trusted := func() []byte { return w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle }
			before := trusted()
			shut(w)
			w.observed.Policy.Spec.Certificates = selfManaged("now")
			for range 30 {
				w.observed.Now = w.observed.Now.Add(10 * time.Second)
				w.carryOut(w.plan())
				for _, webhook := range w.observed.Admission.Webhooks {
					expect.Equal(t, webhook.Name+" trusts what the CustomResourceDefinition does", trusted(), webhook.ClientConfig.CABundle)
				}
			}
			expect.Equal(t, "the same is trusted as before", false, bytes.Equal(before, trusted()))
		})
	}
}

// TestMigrationWaitsForAdmission: a run reads objects at the version that it writes, and
// must not store what it read in a truncated form.
func TestMigrationWaitsForAdmission(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.define(bothStoredNew)
	suspended := func() *bool { return w.observed.Runs[0].Job.Spec.Suspend }
	if len(w.observed.Runs) != 1 || ptr.Deref(suspended(), false) {
		t.Fatalf("no run: %+v", w.observed.Runs)
	}
	w.observed.Admission = nil
	decided := w.plan()
	w.carryOut(decided)
	expect.Equal(t, "it stops while API servers refuse nothing", true, ptr.Deref(suspended(), false))
	expectCondition(t, decided.Status, v1alpha1.ConversionConfiguredCondition, "False", v1alpha1.ReasonAdmissionDrifted, "another client deleted")
	w.converge()
	expect.Equal(t, "it still stops", false, ptr.Deref(suspended(), false))
}
