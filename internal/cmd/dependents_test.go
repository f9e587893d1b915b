// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import "testing"

func TestDependentsFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no definition":    {nil, "accepts 1 arg(s), received 0"},
		"a wrong form":     {[]string{"x", "-o=text"}, `--output must be table, wide, json, yaml, sarif or junit, is "text"`},
		"a dry run":        {[]string{"x", "--dry-run"}, "--dry-run needs --repair: without it the command writes nothing"},
		"a record":         {[]string{"x", "--record=f"}, "--record needs --repair: without it the command writes nothing"},
		"a map":            {[]string{"x", "--helm-map=f"}, "--helm-map needs --version"},
		"no requests":      {[]string{"x", "--qps=0"}, "--qps must be more than 0, is 0"},
		"not a number":     {[]string{"x", "--qps=NaN"}, "--qps must be more than 0, is NaN"},
		"no pages":         {[]string{"x", "--page-size=0"}, "--page-size must be at least 1, is 0"},
		"nothing named":    {[]string{"x", "--most=0"}, "--most must be at least 1, is 0"},
		"a negative time":  {[]string{"x", "--timeout=-1s"}, "--timeout must not be negative, is -1s"},
		"an empty version": {[]string{"x", "--version="}, "--version must not be empty"},
		"a bad kubeconfig": {[]string{"x", "--kubeconfig=nowhere"}, "find the API server: stat nowhere: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := run(append([]string{"dependents"}, test.args...)...)
			if stderr != "Error: "+test.want+"\n" || ExitCode(err) != 2 {
				t.Errorf("stderr is %q, want %q; exit code %d", stderr, test.want, ExitCode(err))
			}
		})
	}
}
