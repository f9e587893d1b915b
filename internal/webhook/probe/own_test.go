// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

const (
	bare   = `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"one","labels":{"a":"b"},"annotations":{"c":"d"}}}`
	filled = `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"one","labels":{"a":"b"}},"spec":{"n":9007199254740993,"list":[{"x":1},{"x":2}],"note":"1"}}`
)

// author is the converter of another project: it changes apiVersion, and calls change.
func author(change func(object map[string]any) error) func(*testca.Authority, *pod) {
	return answering("v1", func(review map[string]any) {
		request := review["request"].(map[string]any)
		object := request["objects"].([]any)[0].(map[string]any)
		object["apiVersion"] = request["desiredAPIVersion"]
		response := map[string]any{"uid": request["uid"], "result": map[string]any{"status": "Success"}, "convertedObjects": []any{object}}
		if err := change(object); err != nil {
			response = map[string]any{"uid": request["uid"], "result": map[string]any{"status": "Failure", "message": err.Error()}}
		}
		review["response"] = response
	})
}

// answering answers reviews of one version.
func answering(version string, answer func(review map[string]any)) func(*testca.Authority, *pod) {
	return func(_ *testca.Authority, p *pod) {
		p.other = func(w http.ResponseWriter, r *http.Request) {
			var review map[string]any
			decoder := json.NewDecoder(r.Body)
			decoder.UseNumber()
			if err := decoder.Decode(&review); err != nil || review["apiVersion"] != "apiextensions.k8s.io/"+version || r.URL.Path != "/their/convert" {
				http.Error(w, "what?", http.StatusBadRequest)
				return
			}
			answer(review)
			_ = json.NewEncoder(w).Encode(review)
		}
	}
}

func ownTarget(p *pod, objects ...string) OwnTarget {
	canary := OwnCanary{From: "example.com/v1", To: "example.com/v2"}
	for _, object := range objects {
		canary.Objects = append(canary.Objects, []byte(object))
	}
	return OwnTarget{Address: p.target.Address, CABundle: p.target.CABundle, ServerName: p.target.ServerName,
		Path: "/their/convert", ReviewVersion: "v1", Canaries: []OwnCanary{canary}}
}

// to reports whether the object has been converted to a version.
func to(object map[string]any, version string) bool {
	return object["apiVersion"] == "example.com/"+version
}

func TestOwn(t *testing.T) {
	const (
		back   = "an object that goes from example.com/v1 to example.com/v2 and back is not the same: "
		broken = "converting a canary from example.com/v1 to example.com/v2: the answer "
	)
	// always calls a change that refuses nothing; filledOnly does so for objects with a spec.
	always := func(change func(object, metadata map[string]any)) func(map[string]any) error {
		return func(object map[string]any) error { change(object, object["metadata"].(map[string]any)); return nil }
	}
	filledOnly := func(change func(object, spec map[string]any)) func(map[string]any) error {
		return func(object map[string]any) error {
			if spec, filled := object["spec"].(map[string]any); filled {
				change(object, spec)
			}
			return nil
		}
	}
	cases := map[string]struct {
		change   func(map[string]any) error
		warnings []string
		want     *Error
	}{
		"it only changes apiVersion": {change: func(map[string]any) error { return nil }},
		"it adds a field":            {change: always(func(object, _ map[string]any) { object["status"] = map[string]any{} })},
		"it adds an annotation": {change: always(func(_, metadata map[string]any) {
			metadata["annotations"] = map[string]any{"c": "d", "theirs": "kept"}
		})},
		"it keeps a field in an annotation, and takes it out again": {change: filledOnly(func(object, spec map[string]any) {
			metadata := object["metadata"].(map[string]any)
			annotations, _ := metadata["annotations"].(map[string]any)
			switch {
			case to(object, "v2"):
				metadata["annotations"] = map[string]any{"note": spec["note"]}
				delete(spec, "note")
			case annotations["note"] != nil:
				spec["note"] = annotations["note"]
				delete(metadata, "annotations")
			}
		})},
		"it loses a field":    {change: filledOnly(func(_, spec map[string]any) { delete(spec, "note") }), warnings: []string{back + ".spec.note is missing"}},
		"it loses an element": {change: filledOnly(func(_, spec map[string]any) { spec["list"] = []any{} }), warnings: []string{back + ".spec.list has 0 elements, expected 2"}},
		"it loses precision": {change: filledOnly(func(_, spec map[string]any) { spec["n"] = json.Number("9007199254740992") }),
			warnings: []string{back + ".spec.n has another value"}},
		"it loses everything": {change: filledOnly(func(object, _ map[string]any) { delete(object, "spec") }), warnings: []string{back + ".spec is missing"}},
		"it refuses what was made up": {change: func(object map[string]any) error {
			if object["spec"] != nil {
				return fmt.Errorf("spec.note must be a cat")
			}
			return nil
		}, warnings: []string{"the converter refuses an object that was made up from the schema: converting to example.com/v2: spec.note must be a cat"}},
		"it refuses all": {change: func(map[string]any) error { return fmt.Errorf("no kind CronTab is registered") },
			want: &Error{ReasonCanaryFailed, "converting to example.com/v2: no kind CronTab is registered"}},
		"it changes the name": {change: always(func(_, metadata map[string]any) { metadata["name"] = "two" }),
			want: &Error{ReasonCanaryFailed, broken + `is not acceptable to an API server: metadata.name is "two", expected "one"`}},
		"it answers in the wrong version": {change: always(func(object, _ map[string]any) { object["apiVersion"] = "example.com/v1" }),
			want: &Error{ReasonCanaryFailed, broken + `is not acceptable to an API server: apiVersion is "example.com/v1", expected "example.com/v2"`}},
		"it drops labels": {change: always(func(_, metadata map[string]any) { delete(metadata, "labels") }),
			want: &Error{ReasonCanaryFailed, broken + `has lost, or changed, metadata.labels["a"]: API servers take labels and annotations from it`}},
		"it is wrong on the way back only": {change: always(func(object, metadata map[string]any) {
			if to(object, "v1") {
				delete(metadata, "annotations")
			}
		}), want: &Error{ReasonCanaryFailed, `converting a canary from example.com/v2 to example.com/v1: the answer has lost, or changed, metadata.annotations["c"]: API servers take labels and annotations from it`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t, author(c.change))
			warnings, err := Own(t.Context(), ownTarget(pod, bare, filled))
			expectError(t, c.want, err)
			expect.Equal(t, "warnings", c.warnings, warnings)
		})
	}
}

// TestOwnV1beta1 checks that fields that API servers ignore in that version may be missing.
func TestOwnV1beta1(t *testing.T) {
	pod := newPod(t, answering("v1beta1", func(review map[string]any) {
		request := review["request"].(map[string]any)
		object := request["objects"].([]any)[0].(map[string]any)
		object["apiVersion"] = request["desiredAPIVersion"]
		delete(review, "apiVersion")
		review["response"] = map[string]any{"result": map[string]any{"status": "Success"}, "convertedObjects": []any{object}}
	}))
	target := ownTarget(pod, bare)
	target.ReviewVersion = "v1beta1"
	if warnings, err := Own(t.Context(), target); err != nil || warnings != nil {
		t.Errorf("warnings %v, error %v", warnings, err)
	}
}

func TestOwnIsNotAConverter(t *testing.T) {
	foreign := testca.New(t)
	cases := map[string]struct {
		change func(*OwnTarget)
		want   *Error
	}{
		"another path": {func(target *OwnTarget) { target.Path = "/convert" },
			&Error{ReasonUnexpectedAnswer, `POST /convert answered HTTP status 400: "what?"`}},
		"another CA": {func(target *OwnTarget) { target.CABundle = foreign.Bundle },
			&Error{ReasonTLSVerificationFailed, `x509: certificate signed by unknown authority`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := newPod(t, author(func(map[string]any) error { return nil }))
			target := ownTarget(pod, bare)
			c.change(&target)
			_, err := Own(t.Context(), target)
			if failure, ok := err.(*Error); !ok || failure.Reason != c.want.Reason || !strings.Contains(failure.Message, c.want.Message) { //nolint:errorlint // it is what is returned
				t.Errorf("error is %v, want %v", err, c.want)
			}
		})
	}
}
