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

// TestOversized: a pod remembers the latest objects that it answered in a truncated
// form, within bounds, and forgets those that it has not seen for long.
func TestOversized(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := newFailureLog(func() time.Time { return now })
	omitted := &conversion.Omitted{Version: "v1", At: "v1beta1", Count: 7, Bytes: 400_000, Fields: []string{".a", ".b", ".c", ".d", ".e", ".f"}}
	for i := range 10 * maxOversized {
		now = now.Add(time.Second)
		log.addOversized(fmt.Sprintf("default/%04d", i), omitted)
		log.addOversized(fmt.Sprintf("default/%04d", i), omitted)
	}
	told := log.read().Oversized
	want := Oversized{Object: "default/0639", Version: "v1beta1", FieldsOf: "v1", Fields: []string{".a", ".b", ".c", ".d", ".e"}, Bytes: 400_000, Last: now}
	if diff := cmp.Diff(want, told[len(told)-1]); diff != "" || len(told) != maxOversized {
		t.Errorf("%d are told; the last (-want +got):\n%s", len(told), diff)
	}
	now = now.Add(oversizedLife + time.Second)
	log.addOversized("default/new", omitted)
	if told := log.read().Oversized; len(told) != 1 || told[0].Object != "default/new" {
		t.Errorf("told are %+v", told)
	}
}
