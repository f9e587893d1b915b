// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
)

func TestMigrateFlags(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no name":               {nil, "name at least one CustomResourceDefinition or resource, or add --all"},
		"an empty name":         {[]string{""}, "the name of a resource must not be empty"},
		"a name and all":        {[]string{"secrets", "--all"}, "name resources, or add --all, not both"},
		"no number":             {[]string{"secrets", "--concurrency=many"}, "invalid argument"},
		"no concurrency":        {[]string{"secrets", "--concurrency=0"}, "--concurrency must be from 1 to 256, is 0"},
		"too many writes":       {[]string{"secrets", "--max-writes-per-second=100001"}, "--max-writes-per-second must be from 0 to 100000, is 100001"},
		"another pace":          {[]string{"secrets", "--pace=slow"}, `--pace must be Gentle or Fast, is "slow"`},
		"another verification":  {[]string{"secrets", "--verify=All"}, `--verify must be None or Sample or Full, is "All"`},
		"another fallback":      {[]string{"secrets", "--fallback=Scale"}, `--fallback must be Status or OldVersion, is "Scale"`},
		"a fallback twice":      {[]string{"secrets", "--fallback=Status,Status"}, "--fallback names Status twice"},
		"a negative delay":      {[]string{"secrets", "--propagation-delay=-1s"}, "--propagation-delay must not be negative, is -1s"},
		"a negative timeout":    {[]string{"secrets", "--timeout=-1s"}, "--timeout must not be negative, is -1s"},
		"no namespace":          {[]string{"secrets", "--record-namespace=A/b"}, `--record-namespace "A/b" is no name of a namespace`},
		"two modes":             {[]string{"secrets", "--dry-run", "--print-role"}, "--dry-run and --print-role exclude each other"},
		"bindings without role": {[]string{"secrets", "--bind-to=a:b"}, "--bind-to needs --print-role"},
		"another format":        {[]string{"secrets", "-o=xml"}, `--output must be text, json or yaml, is "xml"`},
		"no cluster":            {[]string{"secrets", "--server=http://127.0.0.1:1"}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := run(append([]string{"migrate"}, tt.args...)...)
			if ExitCode(err) != 2 || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, stderr lacks %q:\n%s", ExitCode(err), tt.want, stderr)
			}
		})
	}
}

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
		"interrupted":      {results: []standalone.Result{complete, interrupted}, code: 1, err: "not finished: c: continue with the same command"},
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
			if ExitCode(err) != tt.code || text != tt.err {
				t.Errorf("exit code %d, error %q", ExitCode(err), text)
			}
			if !strings.Contains(out.String(), tt.shows) {
				t.Errorf("output lacks %q:\n%s", tt.shows, out.String())
			}
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
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got := bar(1, 2) + bar(0, 0) + bar(2, 2); got != "[##########..........][....................][####################]" {
		t.Errorf("bars are %s", got)
	}
}
