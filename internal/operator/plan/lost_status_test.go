// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// statusLost: without its status, which has what cannot be observed again, the operator does less and later, and
// nothing that harms objects (internal/decisions/0072).
func statusLost(w *world) {
	w.ask("v1", 40)
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.say("The conversion is active, and a migration is half done.")
	w.define(bothStoredOld)
	w.loseStatus("Its status is lost: the conversion stays, and the run continues.")
	w.say("It completes, and v1beta1 is deprecated.")
	w.completes(1000)
	w.loseStatus("The status is lost again, and with it the proof and the day of the deprecation. Another run has to complete.")
	w.say("Two weeks later it has not.")
	w.later(2 * week)
	expect.Equal(w.t, "v1beta1 is served while nothing is proven", true, w.observed.CRD.Spec.Versions[0].Served)
	w.say("It completes: no client has asked for v1beta1 since the operator observes it again, so it is not served any more.")
	w.completes(1000)
	expect.Equal(w.t, "v1beta1 is served", false, w.observed.CRD.Spec.Versions[0].Served)
	w.later(week - time.Hour)
	w.loseStatus("An hour before the removal, the status is lost: the week begins again, and a run has to complete.")
	w.completes(1000)
	w.later(week - time.Hour)
	expect.Equal(w.t, "versions before the week is over", 2, len(w.observed.CRD.Spec.Versions))
	w.say("The week is over.")
	w.later(time.Hour)
	expect.Equal(w.t, "versions in the end", 1, len(w.observed.CRD.Spec.Versions))
	w.say("The policy is deleted, and API servers have not seen yet that the conversion is gone.")
	w.delete()
	w.converge()
	w.loseStatus("Its status is lost: the converter serves for a whole delay again.")
	expect.Equal(w.t, "the converter has pods", true, len(w.observed.Pods) > 0)
	w.say("API servers have had their time.")
	w.settleAPIServers()
}

// loseStatus says what happened, and continues without a status.
func (w *world) loseStatus(says string) {
	w.t.Helper()
	conversion := w.observed.CRD.Spec.Conversion.DeepCopy()
	w.say(says)
	w.observed.Policy.Status = v1alpha1.ConversionPolicyStatus{}
	w.converge()
	expect.Equal(w.t, "spec.conversion after the status was lost", conversion, w.observed.CRD.Spec.Conversion)
}
