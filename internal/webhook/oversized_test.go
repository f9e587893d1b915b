// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// TestOversized checks that a pod remembers a bounded number of the latest objects, and forgets
// expired ones.
func TestOversized(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := newFailureLog(new(failureLogs), crontabs, func() time.Time { return now })
	omitted := &conversion.Omitted{Version: "v1", At: "v1beta1", Count: 7, Bytes: 400_000, Fields: []string{".a", ".b", ".c", ".d", ".e", ".f"}}
	for i := range 10 * maxOversized {
		now = now.Add(time.Second)
		log.addOversized(fmt.Sprintf("default/%04d", i), omitted)
		log.addOversized(fmt.Sprintf("default/%04d", i), omitted)
	}
	got := log.listOversized()
	want := Oversized{CRD: crontabs, Object: "default/0639", Version: "v1beta1", FieldsOf: "v1", Fields: []string{".a", ".b", ".c", ".d", ".e"}, Bytes: 400_000, Last: now}
	if diff := cmp.Diff(want, got[len(got)-1]); diff != "" || len(got) != maxOversized {
		t.Errorf("%d objects; the last (-want +got):\n%s", len(got), diff)
	}
	now = now.Add(oversizedTTL + time.Second)
	log.addOversized("default/new", omitted)
	if got := log.listOversized(); len(got) != 1 || got[0].Object != "default/new" {
		t.Errorf("objects are %+v", got)
	}
}
