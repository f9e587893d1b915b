// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// orphan is what a manager does about the rest of the policy.
func (w *world) orphan(released time.Time) (plan.Plan, bool) {
	state := w.observed
	state.Policy = &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontabs}}
	return plan.MakeOrphan(state, released)
}

func TestOrphans(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		age    time.Duration
		needed bool
		want   []string
	}{
		"active":                          {func(*world) {}, time.Hour, true, nil},
		"active, the CRD is going":        {func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} }, time.Hour, true, nil},
		"active, a certificate is due":    {func(w *world) { w.pass(certificates.DefaultDuration * 3 / 4) }, 0, true, []string{"WriteCertificate"}},
		"active, the certificate is gone": {func(w *world) { w.observed.Certificate = nil }, 0, true, []string{"WriteCertificate"}},
		"active, the authority is gone":   {func(w *world) { w.observed.Authority = nil }, 0, true, nil},
		"active, a migration runs": {func(w *world) {
			w.observed.Rights = true
			w.observed.Runs = []observed.Run{{ID: "a", Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
		}, 0, true, []string{"DeleteRun", "DeleteRights"}},
		"released just now":      {func(w *world) { w.drop("kubectl-replace") }, time.Second, false, nil},
		"released some time ago": {func(w *world) { w.drop("kubectl-replace") }, time.Hour, false, []string{"DeleteChildren"}},
		"the CRD is gone":        {func(w *world) { w.observed.CRD = nil }, 0, false, []string{"DeleteChildren"}},
		"somebody else converts": {func(w *world) {
			w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
		}, time.Hour, false, []string{"DeleteChildren"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.observed.Runs, w.observed.Rights = nil, false
			c.change(w)
			decided, needed := w.orphan(w.observed.Now.Add(-c.age))
			if got := kinds(decided.Steps); needed != c.needed || !slices.Equal(got, c.want) {
				t.Errorf("needed: %t, steps %v; want %t and %v", needed, got, c.needed, c.want)
			}
			if waits := !c.needed && c.want == nil; waits && decided.RecheckAfter <= 0 {
				t.Error("no one looks again")
			}
		})
	}
}

func orphaned(w *world) {
	w.say("Everything is active, and a migration runs.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The policy's finalizer is removed by force, and the policy is gone.")
	w.tend(w.observed.Now)
	w.say("Two months later the certificate is due.")
	w.pass(certificates.DefaultDuration * 3 / 4)
	w.tend(w.observed.Now)
	w.say("Another client takes over the conversion.")
	w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
	released := w.observed.Now
	w.tend(released)
	w.say("API servers have had their time.")
	w.pass(w.observed.Settings.PropagationDelay)
	w.tend(released)
}

// tend does what is to be done about the orphan, once, and tells.
func (w *world) tend(released time.Time) {
	decided, needed := w.orphan(released)
	w.tellSteps(decided.Steps)
	switch {
	case needed:
		w.tell("the converter is kept: the CustomResourceDefinition converts through it")
	case len(decided.Steps) == 0:
		w.tell("the converter is kept until no API server asks it")
	}
	for _, step := range decided.Steps {
		w.do(step)
	}
}
