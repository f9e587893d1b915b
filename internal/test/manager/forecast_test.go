//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/cli/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// forecasted is a forecast that is compared with what happens.
type forecasted struct {
	policy string
	report plan.Report
	// logged is the length of the log before.
	logged int
}

// foresee forecasts what happens if these objects are applied, or with the arguments of the command plan.
func foresee(t *testing.T, policy string, applied []client.Object, args ...string) forecasted {
	t.Helper()
	folder := t.TempDir()
	for _, object := range applied {
		kind, err := apiutil.GVKForObject(object, scheme.New())
		expect.NoError(t, err)
		object.GetObjectKind().SetGroupVersionKind(kind)
		text, err := yaml.Marshal(object)
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(filepath.Join(folder, kind.Kind+".yaml"), text, 0o600))
	}
	if len(applied) > 0 {
		args = append(args, "-f", folder)
	}
	f := forecasted{policy: policy, logged: len(logged.String())}
	said := command(t, 1, append([]string{"plan", policy, "-o", "json", "--kubeconfig", server.KubeconfigFile(t)}, args...)...)
	expect.NoError(t, json.Unmarshal([]byte(said), &f.report))
	return f
}

// command runs a command, and returns its output. The test ends if its exit code is higher than this.
func command(t *testing.T, most int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := cmd.NewRootCommand()
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	if err := root.ExecuteContext(t.Context()); cmd.ExitCode(err) > most {
		t.Fatalf("%v: %v\n%s%s", args, err, &stdout, &stderr)
	}
	return stdout.String()
}

// check compares the writes of the operator with those that it has logged since, in order. A step may be
// repeated, until its effect is observed or because rights were not needed for a moment: the last time counts.
func (f forecasted) check(t *testing.T) {
	t.Helper()
	var said []string
	for _, stage := range f.report.Stages {
		for _, action := range stage.Actions {
			if action.By == forecast.Operator && action.Kind == forecast.Write && action.Step != "Apply" {
				said = append(said, action.Text)
			}
		}
	}
	said = eachLast(said)
	happened := func() (steps []string) {
		for line := range strings.Lines(logged.String()[f.logged:]) {
			_, values, found := strings.Cut(line, "Carried out a step\t")
			var of struct{ Policy, Step string }
			if found && json.Unmarshal([]byte(values), &of) == nil && of.Policy == f.policy {
				steps = append(steps, of.Step)
			}
		}
		return eachLast(steps)
	}
	expect.Eventually(t, "the operator does what was forecast: "+strings.Join(said, "; "), func() (bool, string) {
		return slices.Equal(happened(), said), strings.Join(happened(), "; ")
	})
}

// eachLast returns the steps without those that are repeated later.
func eachLast(steps []string) (last []string) {
	for i, step := range steps {
		if !slices.Contains(steps[i+1:], step) {
			last = append(last, step)
		}
	}
	return last
}
