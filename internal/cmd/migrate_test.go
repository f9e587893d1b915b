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
		"negative settle":           {slices.Concat(good, []string{"--settle=-1s"}), "--settle must not be negative, is -1s"},
		"no workers":                {slices.Concat(good, []string{"--concurrency=0"}), "--concurrency must be at least 1, is 0"},
		"empty pages":               {slices.Concat(good, []string{"--page-size=0"}), "--page-size must be at least 1, is 0"},
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
