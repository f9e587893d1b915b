// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// contextsLive runs each command that accepts several contexts on two names of the API server, and on
// one that does not answer in between.
func contextsLive(t *testing.T, kubeconfig string) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	expect.NoError(t, err)
	one := config.Contexts[config.CurrentContext]
	down := config.Clusters[one.Cluster].DeepCopy()
	down.Server = "https://127.0.0.1:1"
	config.Clusters["down"] = down
	stopped := one.DeepCopy()
	stopped.Cluster = "down"
	config.Contexts["one"], config.Contexts["two"], config.Contexts["down"] = one, one.DeepCopy(), stopped
	file := write(t, "kubeconfig", "")
	expect.NoError(t, clientcmd.WriteToFile(*config, file))
	policy, crd := sampleFile("2-policy.yaml"), sampleFile("3-crd-both.yaml")
	for name, test := range map[string]struct {
		args []string
		code int // without the context that is down
	}{
		"verify":     {[]string{"verify", "--live", "--policy", policy, "--crd", crd}, 0},
		"diff":       {[]string{"diff", "-f", policy, "-f", crd}, 0},
		"audit":      {[]string{"audit"}, 1},
		"dependents": {[]string{"dependents", "crontabs.example.com", "--version=v1alpha1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			report := func(contexts string, want int) (got []string) {
				stdout, stderr, err := run(append(test.args, "--kubeconfig", file, "--context", contexts, "-o=json")...)
				if ExitCode(err) != want {
					t.Fatalf("--context %s: exit code %d, want %d; stderr %q", contexts, ExitCode(err), want, stderr)
				}
				var all struct {
					Contexts []inContext[map[string]any]
				}
				expect.NoError(t, json.Unmarshal([]byte(stdout), &all))
				for _, each := range all.Contexts {
					got = append(got, fmt.Sprint(each.Context, " ", each.Report != nil, " ", each.Error != ""))
				}
				return got
			}
			if diff := cmp.Diff([]string{"one true false", "two true false"}, report("one,two", test.code)); diff != "" {
				t.Errorf("contexts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"one true false", "down false true", "two true false"}, report("one,down,two", 2)); diff != "" {
				t.Errorf("contexts (-want +got):\n%s", diff)
			}
		})
	}
}
