// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// TestMigrates reads migrations of Kubernetes' own, and of the one that was there before it.
func TestMigrates(t *testing.T) {
	crontabs := schema.GroupResource{Group: "example.com", Resource: "crontabs"}
	cases := map[string]struct {
		object string
		want   bool
	}{
		"running":          {`{spec: {resource: {group: example.com, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}]}}`, true},
		"of a version":     {`{spec: {resource: {group: example.com, version: v1, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}]}}`, true},
		"not begun":        {`{spec: {resource: {group: example.com, resource: crontabs}}}`, false},
		"succeeded":        {`{spec: {resource: {group: example.com, resource: crontabs}}, status: {conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True"}]}}`, false},
		"failed":           {`{spec: {resource: {group: example.com, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}, {type: Failed, status: "True"}]}}`, false},
		"of another kind":  {`{spec: {resource: {group: example.com, resource: widgets}}, status: {conditions: [{type: Running, status: "True"}]}}`, false},
		"of another group": {`{spec: {resource: {group: example.org, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}]}}`, false},
		"of no shape":      {`{spec: {resource: crontabs}, status: {conditions: [Running]}}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			if got := migrates(object, crontabs); got != c.want {
				t.Errorf("it migrates: %t, want %t", got, c.want)
			}
		})
	}
}

// recordOf is a run that is under way, with everything that a record can say.
func recordOf() migration.Record {
	start := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	end := metav1.NewTime(start.Add(time.Hour))
	return migration.Record{
		Format: 2, Run: "0a1b2c3d", CRDUID: "uid", CRDGeneration: 3, State: migration.StateRunning, Barrier: "7",
		BarrierKind: migration.BarrierAllServers, APIServers: 3, Waiting: "patches wait",
		Counters: migration.Counters{Total: 10, Rewritten: 3, Current: 2, Gone: 1, Failed: 1, ByFallback: 1},
		Verified: 4, RatePerSecond: 0.25, EstimatedCompletion: &end, StartTime: &start,
		Predicted: []migration.Failure{{Object: "ns/b", Reason: migration.ReasonTooLarge, Message: "big", Command: "wc"}},
		Failures:  []migration.Failure{{Object: "ns/a", Reason: migration.ReasonInvalid, Message: "no", Command: "kubectl get"}},
	}
}

func TestProgressOf(t *testing.T) {
	record := recordOf()
	going := &plan.Progress{
		Step: v1alpha1.MigrationRewriting, Waiting: "patches wait",
		Total: 10, Rewritten: 3, Current: 2, Gone: 1, Failed: 1, Verified: 4, ByFallback: 1,
		RatePerSecond: 1, EstimatedCompletion: record.EstimatedCompletion, Started: record.StartTime,
		Barrier:   &v1alpha1.MigrationBarrier{Kind: v1alpha1.BarrierAllServers, APIServers: 3},
		Predicted: []v1alpha1.MigrationFailure{{Object: "ns/b", Reason: "TooLarge", Message: "big", Command: "wc"}},
		Failures:  []v1alpha1.MigrationFailure{{Object: "ns/a", Reason: "Invalid", Message: "no", Command: "kubectl get"}},
	}
	aborted := *going
	aborted.Finished, aborted.Step, aborted.Aborted = true, "", "the CustomResourceDefinition has changed"
	cases := map[string]struct {
		run    string
		change func(*migration.Record)
		want   *plan.Progress
	}{
		"under way": {"0a1b2c3d", func(*migration.Record) {}, going},
		"aborted": {"0a1b2c3d", func(r *migration.Record) {
			r.State, r.Message, r.CompletionTime = migration.StateAborted, "the CustomResourceDefinition has changed", r.StartTime
		}, &aborted},
		"of another run": {"ffffffff", func(*migration.Record) {},
			&plan.Progress{Finished: true, Aborted: "the record is of run 0a1b2c3d"}},
		"of another time": {"0a1b2c3d", func(r *migration.Record) { r.Format = 99 },
			&plan.Progress{Finished: true, Aborted: `the migration record of run "0a1b2c3d" is not usable: format is 99, this version of conversion-operator reads 1 and 2`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			written := recordOf()
			c.change(&written)
			text, err := json.Marshal(written)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, progressOf(c.run, string(text))); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatesHaveSteps: nothing that a run may be at is without a name in the API.
func TestStatesHaveSteps(t *testing.T) {
	for _, state := range []migration.State{
		migration.StatePreflight, migration.StateSettling, migration.StateRunning, migration.StateAuditing, migration.StateVerifying,
	} {
		if steps[state] == "" {
			t.Errorf("a run that is at %s is at no step", state)
		}
	}
}
