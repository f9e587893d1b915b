// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// fullSpec has a value in every field.
func fullSpec() Spec {
	return Spec{
		FormatVersion: SpecFormat, Run: "r1",
		Pin:       Pin{Name: "crontabs.example.com", UID: "u1", Generation: 3},
		Resource:  metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"},
		Namespace: "conversion-system", RecordConfigMap: "crontabs-r1", RetryConfigMap: "crontabs-r0", Ruleset: "0123456789abcdef", RulesetConfigMap: "crontabs-rules",
		PropagationDelay: metav1.Duration{Duration: 2 * time.Minute}, Preflight: 20, PageSize: 500, Concurrency: 32,
		Pace: v1alpha1.MigrationFast, MaxWritesPerSecond: 50, Verify: v1alpha1.MigrationVerifyFull,
		Fallback:        []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus, v1alpha1.MigrationFallbackOldVersion},
		OldVersions:     []string{"v1beta1"},
		TracingEndpoint: "http://collector:4317",
	}
}

// textOf returns the value of the flag.
func textOf(t *testing.T, s Spec) string {
	t.Helper()
	args := s.Args()
	text, found := strings.CutPrefix(args[len(args)-1], "--spec=")
	if len(args) != 2 || args[0] != "run-migration" || !found {
		t.Fatalf("arguments are %q", args)
	}
	return text
}

// TestSpecFormat1 fixes the layout: a change needs another SpecFormat.
func TestSpecFormat1(t *testing.T) {
	const want = `{"formatVersion":1,"run":"r1","customResourceDefinition":{"name":"crontabs.example.com","uid":"u1","generation":3},` +
		`"resource":{"group":"example.com","version":"v1","resource":"crontabs"},` +
		`"namespace":"conversion-system","recordConfigMap":"crontabs-r1","retryConfigMap":"crontabs-r0","ruleset":"0123456789abcdef","rulesetConfigMap":"crontabs-rules",` +
		`"propagationDelay":"2m0s","preflight":20,"pageSize":500,"concurrency":32,"pace":"Fast","maxWritesPerSecond":50,"verify":"Full",` +
		`"fallback":["Status","OldVersion"],"oldVersions":["v1beta1"],"tracingEndpoint":"http://collector:4317"}`
	text := textOf(t, fullSpec())
	expect.Equal(t, "text", want, text)
	got, err := ParseSpec(text)
	expect.NoError(t, err)
	expect.Equal(t, "specification", fullSpec(), got)
}

// A resource without a CustomResourceDefinition is pinned to a hash, and may be in the core group.
func TestSpecOfBuiltInResource(t *testing.T) {
	want := fullSpec()
	want.Pin = Pin{Name: "secrets", StorageVersionHash: "+S6yMg=="}
	want.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "secrets"}
	got, err := ParseSpec(textOf(t, want))
	expect.NoError(t, err)
	expect.Equal(t, "specification", want, got)
}

func TestParseSpecRefuses(t *testing.T) {
	full := textOf(t, fullSpec())
	changed := func(change func(*Spec)) string {
		s := fullSpec()
		change(&s)
		return textOf(t, s)
	}
	cases := map[string]struct{ text, want string }{
		"nothing":          {"", "the run specification is not readable: unexpected end of JSON input"},
		"a newer format":   {strings.Replace(full, `"formatVersion":1`, `"formatVersion":2,"new":true`, 1), "formatVersion of the run specification is 2, this version of conversion-operator reads 1"},
		"an unknown field": {strings.Replace(full, `"run":"r1"`, `"run":"r1","runs":1`, 1), `the run specification is not readable: unknown field "runs"`},
		"a field in another case": {strings.Replace(full, `"pageSize"`, `"pagesize"`, 1),
			`the run specification is not readable: unknown field "pagesize"`},
		"a field given twice": {strings.Replace(full, `"run":"r1"`, `"run":"r1","run":"r2"`, 1), `the run specification is not readable: duplicate field "run"`},
		"another type":        {strings.Replace(full, `"concurrency":32`, `"concurrency":"32"`, 1), "the run specification is not readable: json: cannot unmarshal string into Go struct field Spec.concurrency of type int"},
		"nothing but the format": {`{"formatVersion":1}`, "the run specification is not valid: [run: Required value: must not be empty, " +
			"customResourceDefinition.name: Required value: must not be empty, " +
			"resource.version: Required value: must not be empty, resource.resource: Required value: must not be empty, " +
			"namespace: Required value: must not be empty, recordConfigMap: Required value: must not be empty, " +
			"customResourceDefinition.uid: Required value: must not be empty, resource.group: Required value: must not be empty, " +
			"customResourceDefinition.generation: Invalid value: 0: must be at least 1, pageSize: Invalid value: 0: must be at least 1, concurrency: Invalid value: 0: must be at least 1, " +
			`pace: Unsupported value: "": supported values: "Gentle", "Fast"]`},
		"negative numbers": {changed(func(s *Spec) {
			s.Preflight, s.MaxWritesPerSecond, s.PropagationDelay.Duration = -1, -2, -time.Second
		}), "the run specification is not valid: [preflight: Invalid value: -1: must be at least 0, maxWritesPerSecond: Invalid value: -2: must be at least 0, " +
			`propagationDelay: Invalid value: "-1s": must not be negative]`},
		"an unknown fallback": {changed(func(s *Spec) { s.Fallback[1] = "Scale" }),
			`the run specification is not valid: fallback[1]: Unsupported value: "Scale": supported values: "Status", "OldVersion"`},
		"a fallback to no version": {changed(func(s *Spec) { s.OldVersions = nil }),
			`the run specification is not valid: fallback[1]: Invalid value: "OldVersion": needs oldVersions`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSpec(c.text)
			if err == nil {
				t.Fatal("no error")
			}
			expect.Equal(t, "error", c.want, err.Error())
		})
	}
}
