// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	admissionregistrationv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// admit stores a webhook configuration as the API server would, and tells of it.
func (w *world) admit(object *admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration) {
	w.t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		w.t.Fatal(err)
	}
	w.observed.Admission = &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := json.Unmarshal(text, w.observed.Admission); err != nil {
		w.t.Fatal(err)
	}
	var hashes []string
	for _, webhook := range w.observed.Admission.Webhooks {
		hash, _, _ := strings.Cut(webhook.Name, ".")
		hashes = append(hashes, hash)
	}
	w.tell("  API servers ask about sizes: %s", w.inOrder(hashes))
}

// sizeAdmission makes API servers refuse what is too large before anything may be
// shortened, for as long as anything may.
func sizeAdmission(w *world) {
	w.observed.Settings.SizeAdmission = true
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.say("API servers are to refuse what is too large, before the CustomResourceDefinition is written.")
	w.applyCRD(bothStoredOld)
	w.settle()
	w.say("All API servers have seen that.")
	w.wait(10 * time.Second)
	w.say("Somebody deletes the webhook configuration.")
	w.observed.Admission = nil
	w.settle()
	w.say("The rules change: API servers ask by both.")
	w.wait(10 * time.Second)
	w.changeRules("/")
	w.settle()
	w.wait(10 * time.Second)
	w.say("API servers have had their time.")
	w.wait(w.observed.Settings.Settle)
	w.say("Another authority is asked for: it is trusted here and there.")
	w.observed.Policy.Spec.Certificates.SelfManaged = &v1alpha1.SelfManagedCertificates{RotationTrigger: "the key was seen"}
	w.settle()
	w.wait(w.observed.Settings.Settle)
	w.wait(w.observed.Settings.Settle)
	w.say("Somebody drops the conversion.")
	w.drop("kubectl-replace")
	w.settle()
	w.say("The policy prefers to lose what has no room: nothing is refused any more.")
	w.observed.Policy.Spec.Converter.Declarative.Overflow = v1alpha1.OverflowDrop
	w.settle()
	w.wait(w.observed.Settings.Settle)
}

// TestSizeAdmissionComesFirst plays that story: whenever the CustomResourceDefinition
// names rules that shorten, API servers were told before to ask by them, and trust
// what the CustomResourceDefinition trusts.
func TestSizeAdmissionComesFirst(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Settings.SizeAdmission = true
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	switched := 0
	check := func() {
		for range 30 {
			w.observed.Now = w.observed.Now.Add(5 * time.Second)
			decided := w.plan()
			for _, step := range decided.Steps {
				if to, is := step.(plan.SwitchCRD); is {
					switched++
					w.expectAdmission(to.Conversion)
				}
				w.do(step)
			}
			w.observed.Policy.Status = decided.Status
		}
	}
	check()
	w.changeRules("/")
	check()
	w.observed.Policy.Spec.Certificates.SelfManaged = &v1alpha1.SelfManagedCertificates{RotationTrigger: "now"}
	check()
	w.drop("kubectl-replace")
	check()
	if switched < 4 {
		t.Errorf("the CustomResourceDefinition was written %d times", switched)
	}
	w.observed.Policy.Spec.Suspend, w.observed.Admission = true, nil
	check()
	if w.observed.Admission != nil {
		t.Error("a suspended policy writes its webhook configuration")
	}
}

func (w *world) expectAdmission(conversion *apiextensionsv1.CustomResourceConversion) {
	w.t.Helper()
	client := conversion.Webhook.ClientConfig
	hash := (*client.Service.Path)[len(plan.ConvertPath)+1:]
	if w.observed.Admission == nil {
		w.t.Fatal("the CustomResourceDefinition is written, and API servers refuse nothing")
	}
	i := slices.IndexFunc(w.observed.Admission.Webhooks, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return *webhook.ClientConfig.Service.Path == plan.AdmitPath+"/"+hash
	})
	if i < 0 {
		w.t.Fatalf("API servers do not ask about sizes by the rules %s", hash)
	}
	if asked := w.observed.Admission.Webhooks[i].ClientConfig; !bytes.Equal(asked.CABundle, client.CABundle) || *asked.Service.Port != *client.Service.Port {
		w.t.Error("conversion and admission trust different authorities, or have different ports")
	}
}

// TestNoSizeAdmission: without the setting nothing is asked, and nothing is shortened.
func TestNoSizeAdmission(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.applyCRD(bothStoredOld)
	w.settle()
	if w.observed.Admission != nil || strings.Contains(w.log.String(), "about sizes") {
		t.Error("API servers are told to ask")
	}
}
