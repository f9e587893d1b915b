// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestMigrateResults(t *testing.T) {
	complete := standalone.Result{Resource: "a", State: standalone.Complete, Counters: contract.Counters{Total: 2, Rewritten: 2}, Pruned: []string{"v1beta1"}}
	failed := standalone.Result{Resource: "b", State: standalone.Failed, Record: "ConfigMap default/b", Counters: contract.Counters{Total: 2, Rewritten: 1, Failed: 1},
		Failures: []v1alpha1.MigrationFailure{{Object: "ns/x", Reason: v1alpha1.FailureInvalid, Message: "too\nlong", Command: "kubectl get x"}}}
	interrupted := standalone.Result{Resource: "c", State: standalone.Interrupted, Message: "interrupted"}
	unpruned := standalone.Result{Resource: "d", State: standalone.Complete, Message: "every object is rewritten, but status.storedVersions was not pruned: it changed"}
	notStarted := standalone.Result{Resource: "e", State: standalone.NotStarted, Message: "in use"}
	for name, tt := range map[string]struct {
		results []standalone.Result
		left    []standalone.LeftOut
		code    int
		err     string
		shows   string
	}{
		"complete":         {results: []standalone.Result{complete}, left: []standalone.LeftOut{{Resource: "events", Why: "they expire"}}, shows: "v1beta1"},
		"nothing":          {},
		"failed objects":   {results: []standalone.Result{complete, failed}, code: 1, err: "not complete: b", shows: "  ns/x: Invalid: too long\n    kubectl get x\n"},
		"interrupted":      {results: []standalone.Result{complete, interrupted}, code: 1, err: "not finished: c: run the same command again"},
		"not pruned":       {results: []standalone.Result{unpruned}, code: 1, err: "not complete: d"},
		"one not started":  {results: []standalone.Result{complete, notStarted}, code: 1, err: "not complete: e"},
		"none started":     {results: []standalone.Result{notStarted}, code: 2, err: "nothing was migrated: in use"},
		"a problem aside":  {results: []standalone.Result{complete}, left: []standalone.LeftOut{{Resource: "x", Why: "is not Established", Problem: true}}, code: 1, err: "not migrated: x"},
		"many are not all": {results: []standalone.Result{failed, failed, failed, failed, failed, failed}, code: 1, err: "not complete: b, b, b, b, b and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			command := &cobra.Command{}
			command.SetOut(&out)
			o := migrateOptions{output: output{form: formText}}
			err := unable(o.showResults(command, tt.results, tt.left))
			text := ""
			if err != nil {
				text = err.Error()
			}
			expect.Equal(t, "exit code and error", []any{tt.code, tt.err}, []any{ExitCode(err), text})
			expect.Contains(t, "the output", out.String(), tt.shows)
		})
	}
}

func TestMigrationProgress(t *testing.T) {
	var out bytes.Buffer
	p := newMigrationProgress(&out, 1)
	stop := p.start()
	p.observe("crontabs", contract.Record{State: contract.StatePropagating})
	p.observe("crontabs", contract.Record{State: contract.StatePropagating})
	p.observe("crontabs", contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 4, Rewritten: 1, Failed: 1}, RatePerSecond: 3.4})
	p.observe("crontabs", contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 4, Rewritten: 1}, Waiting: "no\nanswer"})
	p.warn("crontabs", errors.New("lost"))
	p.warn("crontabs", errors.New("lost"))
	stop()
	want := `crontabs: waiting until every API server writes at the storage version
crontabs: rewriting, 2 of 4 objects, 1 failed, 3 per second
crontabs: rewriting, 1 of 4 objects; waiting: no answer
crontabs: trying again: lost
`
	expect.Equal(t, "log", want, out.String())
	expect.Equal(t, "bars", "[##########..........][....................][####################]", bar(1, 2)+bar(0, 0)+bar(2, 2))
}
