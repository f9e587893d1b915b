// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// All objects but the first fail, and the pod dies at a page in between.
func TestAllFailuresAreListed(t *testing.T) {
	api, store := newFakeAPI(900), &fakeStore{}
	api.onPatch = func(key string) error {
		if key == objectKey(0) {
			return nil
		}
		return apierrors.NewInvalid(testKind, strings.Repeat("x", 500), nil)
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
	must(t, err)
	if record.Failed != 899 || len(failures) != 899 {
		t.Fatalf("%d failed, %d listed", record.Failed, len(failures))
	}
	for i, f := range failures {
		if f.Object != objectKey(i+1) || len(f.Message) > maxListedMessage || f.Reason != ReasonInvalid || f.Command == "" {
			t.Fatalf("failure %d is %+v", i, f)
		}
	}
	for key, text := range store.data {
		if len(text) > chunkBytes+maxChunks {
			t.Errorf("%s has %d bytes", key, len(text))
		}
	}
}

func TestListOfFailuresIsBounded(t *testing.T) {
	var l failureList
	data := map[string]string{}
	for i := range 5000 {
		must(t, l.add([]v1alpha1.MigrationFailure{{Object: fmt.Sprintf("ns/%d", i), Message: strings.Repeat("ä", 500)}}, data))
	}
	size := 0
	for _, text := range data {
		size += len(text)
	}
	if size > maxChunks*(chunkBytes+2) || len(data) != maxChunks {
		t.Errorf("%d bytes in %d keys", size, len(data))
	}
	failures, err := FailuresOf(data)
	must(t, err)
	if len(failures) < 1000 {
		t.Errorf("%d listed", len(failures))
	}
	l.clear(data)
	failures, err = FailuresOf(data)
	if err != nil || len(failures) != 0 {
		t.Errorf("%d listed after all were forgotten, error %v", len(failures), err)
	}
}

func TestListThatIsNotReadable(t *testing.T) {
	data := map[string]string{chunkKey(0): "{"}
	wantError(t, second(FailuresOf(data)), "failures-0.json is not readable")
	wantError(t, second(openFailures(data)), "failures-0.json is not readable")
	wantError(t, second(openSecondLook(map[string]string{againKey: "{"})), "look at again is not readable")
}

func TestReasons(t *testing.T) {
	terminating := apierrors.NewForbidden(testResource.GroupResource(), "a", nil)
	terminating.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	policyDenies := apierrors.NewInvalid(testKind, "a", nil)
	policyDenies.ErrStatus.Message = `crontabs.example.com "a" is forbidden: ValidatingAdmissionPolicy 'hold' with binding 'hold' denied request: no`
	internal := func(text string) error { return apierrors.NewInternalError(errors.New(text)) }
	tests := map[string]struct {
		err  error
		want string
	}{
		"converter refuses":           {unconvertible(), ReasonConversionFailed},
		"converter returns nonsense":  {internal("conversion webhook for example.com/v1beta1, Kind=CronTab returned 0 objects, expected 1"), ReasonConversionFailed},
		"converter is away":           {converterAway(), ReasonUnavailable},
		"converter is in trouble":     {internal(`conversion webhook for example.com/v1beta1, Kind=CronTab failed: an error on the server ("") has prevented the request from succeeding`), ReasonUnavailable},
		"admission webhook is away":   {webhookAway(), ReasonUnavailable},
		"admission webhook denies":    {apierrors.NewBadRequest(`admission webhook "check.example.com" denied the request: no`), ReasonAdmissionDenied},
		"admission plugin denies":     {forbidden("a"), ReasonAdmissionDenied},
		"admission policy denies":     {policyDenies, ReasonAdmissionDenied},
		"schema":                      {invalid("a"), ReasonInvalid},
		"too large for the server":    {tooLarge(), ReasonTooLarge},
		"too large for etcd":          {internal("etcdserver: request is too large"), ReasonTooLarge},
		"too large for its transport": {internal("rpc error: code = ResourceExhausted desc = trying to send message larger than max (3145800 vs. 2097152)"), ReasonTooLarge},
		"etcd is in trouble":          {internal("etcdserver: leader changed"), ReasonUnavailable},
		"namespace terminating":       {terminating, ReasonNamespaceTerminating},
		"written all the time":        {conflict("a"), ReasonConflict},
		"not found":                   {apierrors.NewNotFound(testResource.GroupResource(), "a"), ReasonNotFound},
		"overloaded":                  {overloaded(1), ReasonUnavailable},
		"unreachable":                 {unreachable(), ReasonUnavailable},
		"anything else":               {apierrors.NewBadRequest("no"), ReasonRefused},
	}
	engine := newTestEngine(nil, nil)
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := engine.failure(object, tt.err)
			if got.reason != tt.want || !strings.HasPrefix(got.command, "kubectl ") {
				t.Errorf("reason is %s with %q, want %s", got.reason, got.command, tt.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	engine := newTestEngine(nil, nil)
	scoped := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	unscoped := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	got := []string{
		engine.suggest(ReasonInvalid, scoped), engine.suggest(ReasonConversionFailed, unscoped), engine.suggest(ReasonTooLarge, scoped),
		engine.suggest(ReasonNamespaceTerminating, scoped), engine.suggest(ReasonConflict, scoped),
	}
	want := []string{
		"kubectl patch crontabs.v1.example.com a --namespace ns --type merge --patch '{}' --dry-run=server",
		"kubectl get crontabs.v1.example.com a --output yaml",
		"kubectl get crontabs.v1.example.com a --namespace ns --output json --show-managed-fields | wc --bytes",
		"kubectl get namespace ns --output yaml",
		"kubectl get crontabs.v1.example.com a --namespace ns --watch --output yaml --show-managed-fields",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestShortenKeepsWholeCharacters(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", maxMessage), strings.Repeat("ä", maxMessage), "x" + strings.Repeat("ä", maxMessage)} {
		got := shorten(text, maxMessage)
		if len(got) > maxMessage || !utf8.ValidString(got) || (len(text) <= maxMessage && got != text) {
			t.Errorf("shorten made %d bytes of %d: %q", len(got), len(text), got)
		}
	}
}
