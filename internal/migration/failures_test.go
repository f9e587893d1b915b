// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// All objects but the first fail, with long messages, and the pod crashes in between. The record has the first failures.
func TestAllFailuresAreListed(t *testing.T) {
	api, store := newFakeAPI(900), &fakeStore{}
	api.onPatch = func(key string) error {
		if key == objectKey(0) {
			return nil
		}
		return apierrors.NewInvalid(testKind, strings.Repeat("x", 5000), nil)
	}
	store.onSave = func() error {
		if len(store.saved) == 100 {
			store.onSave = nil
			return forbidden("run-1")
		}
		return nil
	}
	if _, err := newTestEngine(api, store).Run(t.Context()); err == nil {
		t.Fatal("the run did not stop")
	}
	record := mustRun(t, newTestEngine(api, store))
	failures, err := FailuresOf(store.data)
	expect.NoError(t, err)
	if record.Failed != 899 || len(failures) != 899 {
		t.Fatalf("%d failed, %d listed", record.Failed, len(failures))
	}
	for i, f := range failures {
		if f.Object != objectKey(i+1) || len(f.Message) > maxListedMessage || f.Reason != v1alpha1.FailureInvalid || f.Command == "" {
			t.Fatalf("failure %d is %+v", i, f)
		}
	}
	expect.Equal(t, "failures in the record", contract.MaxFailures, len(record.Failures))
	for i, f := range record.Failures {
		if f.Object != objectKey(i+1) || len(f.Message) > maxMessage || len(f.Message) <= maxListedMessage {
			t.Errorf("failure %d of the record is %s with %d bytes", i, f.Object, len(f.Message))
		}
	}
	for key, text := range store.data {
		if key != contract.RecordKey && len(text) > chunkBytes+maxChunks {
			t.Errorf("%s has %d bytes", key, len(text))
		}
	}
}

func TestListOfFailuresIsBounded(t *testing.T) {
	var l failureList
	data := map[string]string{}
	for i := range 5000 {
		expect.NoError(t, l.add([]v1alpha1.MigrationFailure{{Object: fmt.Sprintf("ns/%d", i), Message: strings.Repeat("ä", 500)}}, data))
	}
	size := 0
	for _, text := range data {
		size += len(text)
	}
	if size > maxChunks*(chunkBytes+2) || len(data) != maxChunks {
		t.Errorf("%d bytes in %d keys", size, len(data))
	}
	failures, err := FailuresOf(data)
	expect.NoError(t, err)
	if len(failures) < 1000 {
		t.Errorf("%d listed", len(failures))
	}
	l.clear(data)
	failures, err = FailuresOf(data)
	if err != nil || len(failures) != 0 {
		t.Errorf("%d listed after the list was cleared, error %v", len(failures), err)
	}
}

func TestUnreadableLists(t *testing.T) {
	data := map[string]string{chunkKey(0): "{"}
	wantError(t, second(FailuresOf(data)), "failures-0.json is not readable")
	wantError(t, second(openFailures(data)), "failures-0.json is not readable")
	wantError(t, second(openReverifyList(map[string]string{reverifyKey: "{"}, time.Time{})), "verify again is not readable")
}

func TestTruncateKeepsWholeCharacters(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", maxMessage), strings.Repeat("ä", maxMessage), "x" + strings.Repeat("ä", maxMessage)} {
		got := truncate(text, maxMessage)
		if len(got) > maxMessage || !utf8.ValidString(got) || (len(text) <= maxMessage && got != text) {
			t.Errorf("truncate made %d bytes of %d: %q", len(got), len(text), got)
		}
	}
}

func forbiddenAs(name, reason string) error {
	return apierrors.NewForbidden(testResource.GroupResource(), name, errors.New(reason))
}
