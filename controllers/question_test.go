// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// TestInquiries, by a clock that does not run: what takes its time is asked once, keeps nobody waiting, and
// says meanwhile what was found before.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &questions{}
		var probes atomic.Int64
		slowly := func() *plan.Proof {
			probes.Add(1)
			<-time.After(4500 * time.Millisecond)
			return &plan.Proof{Reason: "Timeout"}
		}
		var found []*plan.Proof
		for range 5 {
			start := time.Now()
			found = append(found, asked.ask(t.Context(), question{pod: "a"}, slowly))
			if waited := time.Since(start); waited > probePatience {
				t.Errorf("somebody waited %s", waited)
			}
			<-time.After(3 * time.Second)
		}
		failed := &plan.Proof{Reason: "Timeout"}
		if diff := cmp.Diff([]*plan.Proof{nil, failed, failed, failed, failed}, found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		if got := probes.Load(); got != 3 {
			t.Errorf("%d probes, want 3", got)
		}
		<-time.After(time.Minute) // the last of them ends
	})
}

// TestAnotherQuestion is asked anew, whatever the pod has said before; and so is
// the same one, once it was answered well.
func TestAnotherQuestion(t *testing.T) {
	asked := &questions{}
	probes := 0
	well := func() *plan.Proof { probes++; return &plan.Proof{} }
	for _, next := range []question{{pod: "a"}, {pod: "a", fingerprint: fingerprint{1}}, {pod: "b"}, {pod: "a"}} {
		if found := asked.ask(t.Context(), next, well); found == nil || found.Reason != "" {
			t.Errorf("%v: found %v", next, found)
		}
	}
	if probes != 4 || len(asked.known) != 0 {
		t.Errorf("%d probes, want 4; %d questions are kept", probes, len(asked.known))
	}
}
