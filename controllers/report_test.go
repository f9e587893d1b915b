// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestApplyError: the status reports an error of the API server, and the step is retried. If admission of
// the operator itself refused it, users have to act.
func TestApplyError(t *testing.T) {
	const own = "prune it: ValidatingAdmissionPolicy 'definitions.conversion-operator.io' with binding 'b' denied request: the operator may not"
	for refusal, want := range map[string]status.Status{
		"apply Secret crontabs: exceeded quota":           status.InProgressStatus,
		"apply it: ValidatingAdmissionPolicy 'a' said no": status.InProgressStatus,
		own:                                status.FailedStatus,
		own + strings.Repeat("!", maxNote): status.FailedStatus,
	} {
		policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com", Generation: 3}}
		policy.Status.ObservedGeneration = 3
		setApplyFailed(&policy.Status.Conditions, policy.Generation, errors.New(refusal), metav1.NewTime(time.Unix(0, 0)))
		ready := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonApplyFailed || len(ready.Message) > maxNote ||
			!strings.HasPrefix(ready.Message, refusal[:min(len(refusal), len(own))]) || strings.HasSuffix(ready.Message, ownRemedy) != (want == status.FailedStatus) {
			t.Errorf("Ready is %+v", ready)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
		expect.NoError(t, err)
		is, err := status.Compute(&unstructured.Unstructured{Object: content})
		expect.NoError(t, err)
		expect.Equal(t, "status that kstatus reads: "+is.Message, want, is.Status)
	}
}

// statusWrites is an API server of one policy that refuses all writes except those of status, and
// counts these. If it has an error, it refuses those, too.
type statusWrites struct {
	client.Client
	count int
	err   error
}

func (w *statusWrites) Status() client.SubResourceWriter { return statusWriter{writes: w} }

func (w *statusWrites) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("the API server is away")
}

type statusWriter struct {
	client.SubResourceWriter
	writes *statusWrites
}

func (w statusWriter) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	w.writes.count++
	return w.writes.err
}

// TestOneStatusWrite: each reconciliation writes the status once. If it reverts a foreign write,
// it does so before the write to the CustomResourceDefinition. Events follow even if a later step
// fails.
func TestOneStatusWrite(t *testing.T) {
	before := v1alpha1.ConversionPolicyStatus{}
	decided := plan.Plan{
		Status: v1alpha1.ConversionPolicyStatus{
			Drift:      &v1alpha1.DriftStatus{Answer: v1alpha1.DriftRepaired},
			Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded}},
		},
		Steps: []step.Step{
			step.RecordDrift{CRD: "uid", Drift: v1alpha1.DriftStatus{Answer: v1alpha1.DriftRepaired}, Note: "a client wrote"},
			step.SwitchCRD{},
			step.Warn{CRD: &apiextensionsv1.CustomResourceDefinition{}, Reason: "Beware", Note: "of this"},
		},
	}
	drift := []string{"Warning Drifted a client wrote", "Warning Drifted a client wrote"}
	wanted := []string{"Normal Succeeded Ready is True", "Warning Beware of this", "Warning Beware of this"}
	cases := map[string]struct {
		decided plan.Plan
		failed  bool
		want    []string
	}{
		"nothing changed":   {plan.Plan{}, false, nil},
		"the status":        {plan.Plan{Status: decided.Status}, false, wanted[:1]},
		"drift":             {plan.Plan{Status: decided.Status, Steps: decided.Steps[:1]}, false, slices.Concat(drift, wanted[:1])},
		"drift, not undone": {decided, true, slices.Concat(drift, wanted)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			writes, recorder := &statusWrites{}, events.NewFakeRecorder(100)
			r := &ConversionPolicyReconciler{Client: writes, Live: writes, Recorder: recorder, Now: time.Now}
			policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}}
			done, applyErr := r.apply(t.Context(), policy, c.decided)
			expect.Equal(t, fmt.Sprint("it fails: ", applyErr), c.failed, applyErr != nil)
			expect.NoError(t, r.report(t.Context(), policy, before, c.decided, done, applyErr))
			expect.Equal(t, "status writes", min(1, len(c.want)), writes.count)
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			expect.Equal(t, "events", c.want, got)
		})
	}
}

// TestStatusWriteConflict: if drift cannot be recorded because the policy changed, the status is not
// taken for written, and no event is emitted for it.
func TestStatusWriteConflict(t *testing.T) {
	drift := v1alpha1.DriftStatus{Answer: v1alpha1.DriftRepaired}
	decided := plan.Plan{
		Status: v1alpha1.ConversionPolicyStatus{Drift: &drift,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConversionVerifiedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified}}},
		Steps: []step.Step{step.RecordDrift{CRD: "uid", Drift: drift, Note: "a client wrote"}},
	}
	writes := &statusWrites{err: apierrors.NewConflict(schema.GroupResource{Resource: "conversionpolicies"}, "crontabs.example.com", errors.New("it changed"))}
	recorder := events.NewFakeRecorder(100)
	r := &ConversionPolicyReconciler{Client: writes, Live: writes, Recorder: recorder, Now: time.Now}
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}}
	done, applyErr := r.apply(t.Context(), policy, decided)
	if !apierrors.IsConflict(applyErr) {
		t.Fatalf("apply returned %v, want a conflict", applyErr)
	}
	if err := r.report(t.Context(), policy, v1alpha1.ConversionPolicyStatus{}, decided, done, applyErr); !apierrors.IsConflict(err) {
		t.Errorf("report returned %v, want a conflict", err)
	}
	close(recorder.Events)
	for event := range recorder.Events {
		t.Errorf("event %q of a status that was not written", event)
	}
}

func TestTruncate(t *testing.T) {
	for text, want := range map[string]string{
		"short":                          "short",
		strings.Repeat("n", maxNote):     strings.Repeat("n", maxNote),
		strings.Repeat("n", maxNote+1):   strings.Repeat("n", maxNote-3) + "...",
		strings.Repeat("é", maxNote/2+1): strings.Repeat("é", (maxNote-3)/2) + "...",
	} {
		expect.Equal(t, "truncated", want, truncate(text))
	}
}
