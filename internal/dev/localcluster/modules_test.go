// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestModuleFileOfAnotherVersion(t *testing.T) {
	upstream := upstreamModule{Go: "1.25.0", Require: []struct{ Path, Version string }{
		{"k8s.io/kubectl", "v0.0.0"},
		{"k8s.io/klog/v2", "v2.130.1"},
		{"example.com/odd", "v0.0.0"},
		{"k8s.io/api", "v0.0.0"},
	}}
	const want = `module localcluster/kubernetes

go 1.25.0

tool (
	k8s.io/kubernetes/cmd/kube-apiserver
	k8s.io/kubernetes/cmd/kube-controller-manager
	k8s.io/kubernetes/cmd/kubectl
	k8s.io/kubernetes/cmd/kube-scheduler
	k8s.io/kubernetes/cmd/kubelet
)

require k8s.io/kubernetes v1.36.3

replace (
	k8s.io/api => k8s.io/api v0.36.3
	k8s.io/kubectl => k8s.io/kubectl v0.36.3
)
`
	expect.Equal(t, "file", want, moduleFile("v1.36.3", upstream))
}

func TestLinkerFlagsStateTheVersion(t *testing.T) {
	expect.Contains(t, "linker flags", linkerFlags("v1.36.3")+" ", ".gitVersion=v1.36.3 ", ".gitMajor=1 ", ".gitMinor=36 ")
}

func TestDefaultVersionIsTheOnePinned(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("modules", "go.mod"))
	expect.NoError(t, err)
	expect.Contains(t, "modules/go.mod", string(mod), "k8s.io/kubernetes "+DefaultKubernetesVersion+" ")
}

func TestModulesAreFoundFromAnywhereInTheCheckout(t *testing.T) {
	root := t.TempDir()
	set := filepath.Join(root, modulesPath)
	expect.NoError(t, os.MkdirAll(set, 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(set, "go.mod"), nil, 0o644))
	for _, start := range []string{root, set} {
		got, err := findModules(start)
		expect.NoError(t, err)
		expect.Equal(t, "from "+start, filepath.Join(root, modulesPath), got)
	}
	_, err := findModules(t.TempDir())
	expect.Contains(t, "error outside a checkout", fmt.Sprint(err), "not inside a conversion-operator checkout")
}

func TestAnotherVersionUsesADerivedSet(t *testing.T) {
	pinned, err := Options{KubernetesVersion: DefaultKubernetesVersion}.moduleSets()
	expect.NoError(t, err)
	o := Options{KubernetesVersion: "v1.36.3", CacheDir: "/cache"}
	other, err := o.moduleSets()
	expect.NoError(t, err)
	expect.Equal(t, "folder of the derived set", "/cache/v1.36.3/modules/kubernetes", other[kubernetesSet].dir)
	expect.Equal(t, "that two versions of Kubernetes have the same key", false, other[kubernetesSet].key == pinned[kubernetesSet].key)
	expect.Equal(t, "that etcd and containerd depend on the version of Kubernetes", false, other[pinnedSet] != pinned[pinnedSet])
}

// TestUnknownVersion: a version of Kubernetes that does not exist gives a clear error. No module
// can be downloaded in this test.
func TestUnknownVersion(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	dir := t.TempDir()
	o := Options{KubernetesVersion: "v1.99.0", CacheDir: dir}
	err := o.deriveIfMissing(t.Context(), o.derivedSetDir())
	expect.Contains(t, "error", fmt.Sprint(err), "KUBERNETES_VERSION=v1.99.0: ", "k8s.io/kubernetes", "disabled by GOPROXY=off")
}

// TestModulesAgree: the cluster and the operator use the same versions of libraries, and the tests'
// Kubernetes is the release of those libraries, so that each is compiled once.
func TestModulesAgree(t *testing.T) {
	cluster, operator := versionsIn(t, "modules"), versionsIn(t, filepath.Join("..", "..", ".."))
	want := "v0." + strings.TrimPrefix(DefaultKubernetesVersion, "v1.")
	expect.Equal(t, "the operator's k8s.io/client-go, by the cluster's Kubernetes", want, operator["k8s.io/client-go"])
	for path, version := range operator {
		if other, shared := cluster[path]; shared && other != version {
			t.Errorf("%s is %s in go.mod and %s in internal/dev/localcluster/modules/go.mod: go get it at the higher version in both", path, version, other)
		}
	}
}

// versionsIn returns the versions of all modules that the go.mod of a directory requires, by path.
func versionsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	expect.NoError(t, err)
	versions := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(?:\t|require |\t\S+ => )(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
		versions[line[1]] = line[2] // replacements follow
	}
	return versions
}
