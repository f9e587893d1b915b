// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestOptionsTakeTheirDefaultsFromTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		version string
		given   Options
		want    Options
		wantErr string
	}{
		"nothing given":   {want: Options{Name: DefaultName, KubernetesVersion: DefaultKubernetesVersion, CacheDir: "/cache"}},
		"a version":       {version: "1.36.3", want: Options{Name: DefaultName, KubernetesVersion: "v1.36.3", CacheDir: "/cache"}},
		"the oldest":      {version: "oldest", want: Options{Name: DefaultName, KubernetesVersion: OldestKubernetesVersion, CacheDir: "/cache"}},
		"a minor version": {version: "1.34", want: Options{Name: DefaultName, KubernetesVersion: "v1.34.2", CacheDir: "/cache"}},
		"options before variables": {
			version: "v1.36.3",
			given:   Options{Name: "a", KubernetesVersion: "v1.38.0-beta.1", CacheDir: "/mine", ProcessNodes: 2},
			want:    Options{Name: "a", KubernetesVersion: "v1.38.0-beta.1", CacheDir: "/mine", ProcessNodes: 2},
		},
		"a name that leaves the directory": {given: Options{Name: "../a"}, wantErr: `cluster name "../a" is not valid`},
		"more nodes than addresses":        {given: Options{ProcessNodes: 201}, wantErr: "201 nodes of processes are not possible"},
		"a branch as version":              {version: "master", wantErr: `KUBERNETES_VERSION="master" is not a version`},
		"a minor version without tests":    {version: "1.31", wantErr: `KUBERNETES_VERSION="1.31" is not a version`},
	}
	t.Setenv(CacheVariable, "/cache")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(VersionVariable, test.version)
			got, err := test.given.withDefaults()
			if test.wantErr != "" {
				expect.Contains(t, "error", fmt.Sprint(err), test.wantErr)
				return
			}
			expect.NoError(t, err)
			got.Progress = nil
			expect.Equal(t, "result", test.want, got)
			expect.Equal(t, "binaries in", filepath.Join(test.want.CacheDir, test.want.KubernetesVersion, "bin"), got.binDir())
		})
	}
}

func TestPreflight(t *testing.T) {
	cgroups := []string{"/sys/fs/cgroup/cgroup.procs"}
	found := func(string) (string, error) { return "/bin/x", nil }
	tests := map[string]struct {
		host    host
		options Options
		want    string
	}{
		"all there":             {host: host{os: "linux", cgroups: cgroups, lookPath: found}, options: Options{CacheDir: "/root/c"}, want: "<nil>"},
		"another system":        {host: host{os: "darwin"}, want: "needs Linux and this is darwin"},
		"no root":               {host: host{os: "linux", uid: 1000}, want: "needs root"},
		"no root, no full node": {host: host{os: "linux", uid: 1000}, options: Options{ProcessNodes: 2}, want: "<nil>"},
		"nothing installed":     {host: host{os: "linux", lookPath: absent}, want: "not on PATH: runc, ip: install runc and iproute2: apt-get install -y runc iproute2, or run make deps"},
		"no control groups":     {host: host{os: "linux", lookPath: found}, want: "control groups are not mounted"},
		"a cache that is lost":  {host: host{os: "linux", cgroups: cgroups, lookPath: found}, options: Options{CacheDir: "/run/c"}, want: "LOCALCLUSTER_CACHE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expect.Contains(t, "error", fmt.Sprint(test.host.check(test.options)), test.want)
		})
	}
}

func TestCheckSpace(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, checkSpace(dir, 1))
	expect.Contains(t, "error", fmt.Sprint(checkSpace(dir, math.MaxUint64)), dir+" has ", " MB of free space, and a cluster needs ", CacheVariable)
}

func absent(string) (string, error) { return "", exec.ErrNotFound }

const csv = "conversion-operator.clusterserviceversion.yaml"

// TestSupportedVersionsAgree: every place that names the supported versions of Kubernetes agrees
// with SupportedVersions.
func TestSupportedVersionsAgree(t *testing.T) {
	oldest, newest := minor(OldestKubernetesVersion), minor(DefaultKubernetesVersion)
	supported := "Kubernetes " + oldest + " to " + newest
	var releases, rows, stages []string
	for _, version := range SupportedVersions {
		releases = append(releases, strings.TrimPrefix(version, "v"))
		rows = append(rows, "\n| "+minor(version)+" | supported: ")
		if version != DefaultKubernetesVersion && version != OldestKubernetesVersion {
			stages = append(stages, " integration@"+minor(version)+" ", " helm@"+minor(version)+" ")
		}
	}
	for file, says := range map[string][]string{
		"README.md":                                    slices.Concat(releases, []string{supported, "a real Kubernetes " + newest}),
		"api/docs/installing.md":                       slices.Concat(releases, rows, []string{supported}),
		"internal/dev/tools/test.sh":                   stages,
		".ci/run":                                      {supported, "run on Kubernetes " + newest},
		"config/manifests/bases/" + csv:                {supported, "minKubeVersion: " + OldestInstallableMinor + ".0\n"},
		"bundle/manifests/" + csv:                      {supported, "minKubeVersion: " + OldestInstallableMinor + ".0\n"},
		"config/chart/Chart.yaml":                      {"kubeVersion: '>=" + OldestInstallableMinor + ".0-0'\n"},
		"internal/dev/tools/api-reference/config.yaml": {`kubernetesVersion: "` + newest + `"`},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", file))
		expect.NoError(t, err)
		expect.Contains(t, file, string(text), says...)
	}
}

// minor returns the minor version without the letter: 1.37 of v1.37.0.
func minor(version string) string { return strings.TrimPrefix(minorOf(version), "v") }

// TestSupportedVersionsAreInOrder: there is one release of each minor version, from the oldest to the
// newest.
func TestSupportedVersionsAreInOrder(t *testing.T) {
	expect.Equal(t, "first version", OldestKubernetesVersion, SupportedVersions[0])
	expect.Equal(t, "last version", DefaultKubernetesVersion, SupportedVersions[len(SupportedVersions)-1])
	previous := 0
	for _, version := range SupportedVersions {
		var number int
		if _, err := fmt.Sscanf(minorOf(version), "v1.%d", &number); err != nil || previous != 0 && number != previous+1 {
			t.Errorf("%s follows v1.%d: %v", version, previous, err)
		}
		previous = number
	}
}
