// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

var (
	groupsInRow = regexp.MustCompile(`(?m)^\| [^|]+ \| (` + "`" + `[^|]+` + "`" + `) \| [^|]+ \|$`)
	groupInRow  = regexp.MustCompile("`([^`]+)`")
)

// TestReadersAreDocumented: users find every group, and no other.
func TestReadersAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "api", "docs", "bootstrap.md"))
	if err != nil {
		t.Fatal(err)
	}
	var known, documented []string
	for _, reader := range Readers {
		known = append(known, reader.Groups...)
	}
	for _, row := range groupsInRow.FindAllStringSubmatch(string(page), -1) {
		for _, group := range groupInRow.FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, group[1])
		}
	}
	slices.Sort(known)
	slices.Sort(documented)
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("groups (-known +documented):\n%s", diff)
	}
}
