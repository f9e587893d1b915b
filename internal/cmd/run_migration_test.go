// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunMigrationFlags(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "missing")
	good := `--spec={"formatVersion":1,"run":"r1","customResourceDefinition":{"name":"crontabs.example.com","uid":"u1","generation":3},` +
		`"resource":{"group":"example.com","version":"v1","resource":"crontabs"},"namespace":"conversion-system","recordConfigMap":"crontabs-r1",` +
		`"propagationDelay":"2m0s","preflight":20,"pageSize":500,"concurrency":32,"pace":"Gentle","verify":"Sample"}`
	cases := map[string]struct {
		args []string
		want string
	}{
		"none":                      {nil, `required flag(s) "spec" not set`},
		"not a specification":       {[]string{"--spec={}"}, "formatVersion of the run specification is 0, this version of conversion-operator reads 1"},
		"an argument":               {[]string{good, "crontabs"}, `unknown command "crontabs" for "conversion-operator run-migration"`},
		"good, but no such cluster": {[]string{good, "--kubeconfig=" + kubeconfig}, "stat " + kubeconfig + ": no such file or directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(append([]string{"run-migration"}, tc.args...)...)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
