// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMigrateFlags(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "missing")
	good := []string{
		"migrate", "--run=r1", "--group=example.com", "--version=v1", "--resource=crontabs",
		"--crd=crontabs.example.com", "--crd-uid=u1", "--crd-generation=3", "--namespace=conversion-system", "--checkpoint=crontabs-r1", "--kubeconfig=" + kubeconfig,
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"none":                      {[]string{"migrate"}, "--run is required\n--group is required\n--version is required\n--resource is required\n--crd is required\n--crd-uid is required\n--namespace is required\n--checkpoint is required\n--crd-generation is required and must be at least 1, is 0"},
		"no generation":             {slices.Concat(good, []string{"--crd-generation=0"}), "--crd-generation is required and must be at least 1, is 0"},
		"generation not a number":   {slices.Concat(good, []string{"--crd-generation=x"}), `invalid argument "x" for "--crd-generation" flag: strconv.ParseInt: parsing "x": invalid syntax`},
		"negative delay":            {slices.Concat(good, []string{"--settle=-1s"}), "--settle must not be negative, is -1s"},
		"no workers":                {slices.Concat(good, []string{"--concurrency=0"}), "--concurrency must be at least 1, is 0"},
		"empty pages":               {slices.Concat(good, []string{"--page-size=0"}), "--page-size must be at least 1, is 0"},
		"negative rate":             {slices.Concat(good, []string{"--max-writes-per-second=-1"}), "--max-writes-per-second must not be negative, is -1"},
		"negative preflight":        {slices.Concat(good, []string{"--preflight=-1"}), "--preflight must not be negative, is -1"},
		"unknown pace":              {slices.Concat(good, []string{"--pace=slow"}), `--pace must be Gentle or Fast, is "slow"`},
		"unknown verification":      {slices.Concat(good, []string{"--verify=Some"}), `--verify must be None, Sample or Full, is "Some"`},
		"unknown fallback":          {slices.Concat(good, []string{"--fallback=Status,Scale"}), `--fallback must be Status or OldVersion, is "Scale"`},
		"fallback to no version":    {slices.Concat(good, []string{"--fallback=Status,OldVersion"}), "--fallback OldVersion needs --old-versions"},
		"all of them":               {slices.Concat(good, []string{"--fallback=Status,OldVersion", "--old-versions=v1beta1,v1alpha1", "--verify=Full", "--max-writes-per-second=100"}), "stat " + kubeconfig + ": no such file or directory"},
		"an argument":               {slices.Concat(good, []string{"crontabs"}), `unknown command "crontabs" for "conversion-operator migrate"`},
		"good, but no such cluster": {good, "stat " + kubeconfig + ": no such file or directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(tc.args...)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
