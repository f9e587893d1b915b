// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import "testing"

func TestReaderOf(t *testing.T) {
	for group, want := range map[string]string{
		"karpenter.sh":                       "Karpenter",
		"karpenter.k8s.aws":                  "Karpenter",
		"cluster.x-k8s.io":                   "Cluster API",
		"infrastructure.cluster.x-k8s.io":    "Cluster API",
		"crd.projectcalico.org":              "Calico",
		"templates.gatekeeper.sh":            "Gatekeeper",
		"acme.cert-manager.io":               "cert-manager",
		"policy.cert-manager.io":             "approver-policy",
		"conversion-operator.io":             "conversion-operator",
		"probe.conversion-operator.io":       "conversion-operator",
		"my-cluster.x-k8s.io":                "",
		"example.karpenter.sh":               "",
		"karpenter.sh.example.com":           "",
		"gatekeeper.sh":                      "",
		"trust.cert-manager.io":              "",
		"my-conversion-operator.io":          "",
		"conversion-operator.io.example.com": "",
		"example.com":                        "",
		"":                                   "",
	} {
		got := ""
		if reader := ReaderOf(group); reader != nil {
			got = reader.Name
		}
		if got != want {
			t.Errorf("%q is needed by %q, want %q", group, got, want)
		}
	}
}

// TestReaders: each group belongs to one component, and each component has a source.
func TestReaders(t *testing.T) {
	seen := map[string]bool{}
	for _, reader := range Readers {
		if reader.Name == "" || reader.Need == "" || reader.Source == "" || len(reader.Groups) == 0 {
			t.Errorf("incomplete: %+v", reader)
		}
		for _, group := range reader.Groups {
			if seen[group] {
				t.Errorf("%s is there twice", group)
			}
			seen[group] = true
		}
	}
}
