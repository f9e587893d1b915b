// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// blockRemoval blocks the removal of v1: the policy does not accept the loss of the object's note.
func blockRemoval(now *observation) {
	retire(now, v1alpha1.RetirementRemove)
	conditions := now.Policy.Status.Conditions
	retired := &conditions[len(conditions)-1]
	retired.Status, retired.Reason = metav1.ConditionFalse, v1alpha1.ReasonBlocked
	retired.Message = "v1 stays: 1 objects have preserved values that only this version can express: .spec.note"
}

var preservedViolations = []violation{
	{annotationsHold, "hold .spec.note <nil>; expected note", func(now, _ *observation) {
		delete(now.Preserved["job"], joined)
	}},
	{annotationsHold, "hold .spec.note other; expected note", func(now, _ *observation) {
		now.Preserved["job"][joined][".spec.note"] = "other"
	}},
	{annotationsHold, "hold .spec.hostPort host; expected <nil>", func(now, _ *observation) {
		now.Preserved["job"][joined][hostOnlyPath] = "host"
	}},
	{annotationsHold, "hold .spec.timeoutSeconds 5; expected <nil>", func(now, _ *observation) {
		now.Preserved["job"][nested] = map[string]any{".spec.timeoutSeconds": number(5)}
	}},
	{"a version stays while values would be lost with it", "v1 is gone, and job has values of it: [.spec.note]", func(now, _ *observation) {
		blockRemoval(now)
		now.Subject.Versions, now.Subject.Served, now.Subject.Deprecated = []string{hub}, []string{hub}, nil
		now.Has, now.Serves, now.Deprecates = []string{hub}, []string{hub}, nil
	}},
	{"what may be removed takes no values along", "job holds .spec.note of v1, which status.versions calls safe to remove", func(now, _ *observation) {
		now.Policy.Status.Versions[1].SafeToRemove = true
	}},
	{"what may be removed takes no values along", "job holds .spec.note of v1, which status.versions calls safe to remove", func(now, _ *observation) {
		now.Policy.Spec.Retirement = []v1alpha1.Retirement{
			{Version: joined, AcceptedLosses: []string{hostOnlyPath}}, {Version: nested, AcceptedLosses: []string{".spec"}}}
		now.Policy.Status.Versions[1].SafeToRemove = true
	}},
	{"versions are as their authors want them", "VersionsRetired is True, : ; expected it to be Blocked by map[v1:job]", func(now, _ *observation) {
		blockRemoval(now)
		now.Policy.Status.Conditions[2] = metav1.Condition{Type: v1alpha1.VersionsRetiredCondition, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	}},
	{"versions are as their authors want them", "Requested: why; expected it to be Blocked", func(now, _ *observation) {
		blockRemoval(now)
		now.Policy.Status.Conditions[2].Reason, now.Policy.Status.Conditions[2].Message = v1alpha1.ReasonRequested, "why"
	}},
	{"versions are as their authors want them", "the status does not say that v1 is blocked by [.spec.note]: v1 stays: 1 objects hold values of it", func(now, _ *observation) {
		blockRemoval(now)
		now.Policy.Status.Conditions[2].Message = "v1 stays: 1 objects hold values of it"
	}},
	{"versions are as their authors want them", "the status does not say that v1 is blocked by [.spec.note]: v2 stays: .spec.note", func(now, _ *observation) {
		blockRemoval(now)
		now.Policy.Status.Conditions[2].Message = "v2 stays: .spec.note"
	}},
	{"versions are as their authors want them", "the status does not say that v1 is blocked by [.spec.note]", func(now, _ *observation) {
		blockRemoval(now)
		now.Policy.Status.Versions[1].BlockedBy = now.Policy.Status.Versions[1].BlockedBy[1:]
	}},
}

// TestAllowedPreservedValues has observations that violate no invariant.
func TestAllowedPreservedValues(t *testing.T) {
	for name, change := range map[string]func(now *observation){
		"a version stays, and the status says why": blockRemoval,
		"a version stays, and migrations are suspended": func(now *observation) {
			blockRemoval(now)
			now.Subject.MigrationsSuspended = true
			now.Policy.Status.Conditions[2].Reason = ""
		},
		"accepted values are there until their version goes": func(now *observation) {
			now.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: joined, AcceptedLosses: []string{".spec.note"}}}
			now.Policy.Status.Versions[1].SafeToRemove = true
		},
		"a host that was overwritten is still there": func(now *observation) {
			now.Subject.Stale = map[string]bool{"job": true}
			now.Preserved["job"][joined][hostOnlyPath] = "host"
		},
		"an object at v1 has the note itself": func(now *observation) {
			now.Stored["job"], now.Listed = joined, []string{hub, joined}
			now.Preserved["job"] = nil
			now.Storage, now.Subject.Storage = joined, joined
			now.Policy.Status.MigrationEvidence = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := healthy()
			change(&now)
			for _, always := range []bool{true, false} {
				if wrong := check(invariants, always, map[string]observation{"a": now}, map[string]observation{"a": now}); len(wrong) > 0 {
					t.Errorf("violated: %q", wrong)
				}
			}
		})
	}
}

func TestPreservedIn(t *testing.T) {
	const name = "conversion-operator.io/v1.crontabs.a.soak.example.com"
	got, err := preservedIn(map[string]string{
		name: `{"format":2,"fields":{"/spec/note":"a","/spec/hostPort":"b"}}`,
		"conversion-operator.io/v2.crontabs.a.soak.example.com": `{"format":2,"fields":{"/spec/timeoutSeconds":9007199254740993}}`,
		"conversion-operator.io/v2.crontabs.b.soak.example.com": `of another kind`,
	}, crdOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]any{
		joined: {".spec.note": "a", ".spec.hostPort": "b"}, nested: {".spec.timeoutSeconds": number(9007199254740993)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "null", `{"format":1,"fields":{}}`, `{"format":2,"deflate":"x"}`, `{"format":2,"unreadable":"x"}`} {
		if _, err := preservedIn(map[string]string{name: text}, crdOf("a")); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
