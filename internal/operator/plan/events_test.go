// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestARestartIsNoNews: a manager that starts knows nothing of what the one before
// it had asked, and says nothing again.
func TestARestartIsNoNews(t *testing.T) {
	for name, story := range map[string]func(*world){
		"ready":          policyFirst,
		"failed objects": failedObjects,
		"broken rules": func(w *world) {
			w.applyCRD(bothStoredNew)
			w.useRules("")
		},
		"paused": func(w *world) {
			w.applyCRD(bothStoredNew)
			w.pause(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			story(w)
			w.observed.Samples, w.observed.APIServer, w.observed.Written = nil, nil, nil
			w.observed.Requested, w.observed.Cleared, w.observed.Resampled = nil, nil, nil
			w.events.Reset()
			w.converge()
			expect.Equal(t, "said again", "", w.events.String())
		})
	}
}

// eventsOf are all events that come of a plan.
func (w *world) eventsOf(decided plan.Plan) []gate.Event {
	var events []gate.Event
	for _, s := range decided.Steps {
		switch s := s.(type) {
		case step.Warn:
			events = append(events, gate.Event{Reason: s.Reason, Note: s.Note, Warning: true, CRD: s.CRD.UID})
		case step.RecordDrift:
			events = append(events, gate.Event{Reason: v1alpha1.ReasonDrifted, Note: s.Note, Warning: true, CRD: s.CRD})
		}
	}
	return append(events, plan.Events(w.observed.Policy.Status, decided.Status)...)
}

func toldEvent(event gate.Event) string {
	text := "Normal  "
	if event.Warning {
		text = "Warning "
	}
	text += event.Reason + " " + event.Note
	if event.CRD != "" {
		text += " [CRD too]"
	}
	return text
}

// expectNothingNew holds the plan of a world at rest to saying nothing.
func (w *world) expectNothingNew(events []gate.Event) {
	w.t.Helper()
	for _, event := range events {
		w.t.Errorf("nothing has changed, and there is an event: %s", toldEvent(event))
	}
}

// TestColumns shows what kubectl get shows of policies as they come to rest, each
// named by what happened before. The API server's own code makes the cells, and
// kubectl's own code prints them.
func TestColumns(t *testing.T) {
	var policies []v1alpha1.ConversionPolicy
	for _, life := range []struct {
		policy string
		play   func(*world)
	}{
		{policyYAML, policyFirst}, {policyYAML, failedObjects}, {policyYAML, onTrigger}, {policyYAML, migrationSuspended},
		{policyYAML, versionRetired}, {policyYAML, paused}, {policyYAML, badRules}, {policyYAML, unreachable},
		{policyYAML, lostSample}, {policyYAML, conversionsFail}, {policyYAML, driftContested}, {policyYAML, certificatesOfOthers}, {policyYAML, deletionBlocked},
		{serviceYAML, serviceStory}, {noneYAML, noneStory},
	} {
		w := newWorld(t, life.policy)
		life.play(w)
		policies = append(policies, w.rests...)
	}
	for name, options := range map[string]printers.PrintOptions{"get.txt": {}, "get-wide.txt": {Wide: true}} {
		golden.Check(t, printed(t, policies, options), "columns", name)
	}
}

// rest keeps a policy that came to rest, by the name of the chapter, for kubectl get.
func (w *world) rest() {
	policy := w.observed.Policy.DeepCopy()
	policy.Name = strings.TrimSuffix(w.chapter, ".")
	if rests := len(w.rests); rests > 0 && w.rests[rests-1].Name == policy.Name {
		w.rests = w.rests[:rests-1]
	}
	w.rests = append(w.rests, *policy)
}

// printed are policies in a table, with the columns that are installed.
func printed(t *testing.T, policies []v1alpha1.ConversionPolicy, options printers.PrintOptions) string {
	t.Helper()
	columns, err := tableconvertor.New(installed(t).Spec.Versions[0].AdditionalPrinterColumns)
	expect.NoError(t, err)
	table := &metav1.Table{}
	for i := range policies {
		row, err := columns.ConvertToTable(t.Context(), &policies[i], nil)
		expect.NoError(t, err)
		table.ColumnDefinitions = row.ColumnDefinitions
		table.Rows = append(table.Rows, row.Rows...)
	}
	var out strings.Builder
	expect.NoError(t, printers.NewTablePrinter(options).PrintObj(table, &out))
	return rulesetHash.ReplaceAllString(out.String(), "0123456789abcdef")
}

// TestOnlyProgress: everything that a decision of another manager depends on, and every problem, is more
// than progress.
func TestOnlyProgress(t *testing.T) {
	sampling := func(changes ...func(*v1alpha1.ConversionPolicyStatus)) v1alpha1.ConversionPolicyStatus {
		status := v1alpha1.ConversionPolicyStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
			{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProbing}}}
		for _, change := range changes {
			change(&status)
		}
		return status
	}
	cases := map[string]struct {
		after v1alpha1.ConversionPolicyStatus
		want  bool
	}{
		"another step": {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Conditions[0].Reason = v1alpha1.ReasonProbing }), true},
		"pods and checks": {sampling(func(s *v1alpha1.ConversionPolicyStatus) {
			s.Webhook, s.Verification = &v1alpha1.WebhookStatus{Ready: 3}, &v1alpha1.VerificationStatus{Subject: "a"}
		}), true},
		"ready":              {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Conditions[0].Status = metav1.ConditionTrue }), false},
		"a failure":          {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Conditions[0].Reason = v1alpha1.ReasonCanaryFailed }), false},
		"another generation": {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.ObservedGeneration = 2 }), false},
		"a revision is active": {sampling(func(s *v1alpha1.ConversionPolicyStatus) {
			s.ActiveRevisions = []v1alpha1.ActiveRevision{{Revision: "a"}}
		}), false},
		"drift":  {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.Drift = &v1alpha1.DriftStatus{} }), false},
		"window": {sampling(func(s *v1alpha1.ConversionPolicyStatus) { s.UnconvertedWindow = &v1alpha1.UnconvertedWindow{} }), false},
		"a problem": {sampling(func(s *v1alpha1.ConversionPolicyStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.DeletionBlockedCondition, Status: metav1.ConditionTrue})
		}), false},
	}
	for name, c := range cases {
		expect.Equal(t, name, c.want, plan.OnlyProgress(sampling(), c.after))
	}
	expect.Equal(t, "a policy without a status waits for it", false, plan.OnlyProgress(v1alpha1.ConversionPolicyStatus{}, sampling()))
}
