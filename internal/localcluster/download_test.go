// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// officialFiles are what a mirror has: three binaries with their sums.
func officialFiles(t *testing.T) map[string]string {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	expect.NoError(t, writeTar(zipped, tarFile{name: "etcd-v3.9.9-linux/etcd", mode: 0o755, content: []byte("etcd")}))
	expect.NoError(t, zipped.Close())
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	etcd := "/etcd-io/etcd/releases/download/v3.9.9/"
	name := "etcd-v3.9.9-linux-" + runtime.GOARCH + ".tar.gz"
	kubernetes := "/release/v1.37.2/bin/linux/" + runtime.GOARCH + "/"
	return map[string]string{
		etcd + name:                          archive.String(),
		etcd + "SHA256SUMS":                  sum("another") + "  another.tar.gz\n" + sum(archive.String()) + "  " + name + "\n",
		kubernetes + "kube-apiserver":        "kube-apiserver",
		kubernetes + "kube-apiserver.sha256": sum("kube-apiserver"),
		kubernetes + "kubectl":               "kubectl",
		kubernetes + "kubectl.sha256":        sum("kubectl") + "\n",
	}
}

func TestOfficialBinaries(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are official binaries of servers for Linux only")
	}
	wanted := []target{
		{name: "etcd", set: pinnedSet}, {name: "kube-apiserver", set: pinnedSet}, {name: "kubectl", set: pinnedSet}, {name: "containerd", set: pinnedSet},
	}
	kubernetes := "/release/v1.37.2/bin/linux/" + runtime.GOARCH + "/"
	cases := map[string]struct {
		change func(files map[string]string)
		built  string // what is compiled
		says   string // in the progress, or in the error
		fails  bool
	}{
		"all are there":          {func(map[string]string) {}, "containerd", "downloaded kubectl, 0 MB, in ", false},
		"the server lacks one":   {func(files map[string]string) { delete(files, kubernetes+"kubectl") }, "kubectl containerd", "kubectl: 404 Not Found", false},
		"the server has none":    {func(files map[string]string) { clear(files) }, "etcd kube-apiserver kubectl containerd", "SHA256SUMS: 404 Not Found", false},
		"one was changed":        {func(files map[string]string) { files[kubernetes+"kubectl"] += "!" }, "", "kubectl has the SHA-256 sum ", true},
		"a sum is missing":       {func(files map[string]string) { files[kubernetes+"kubectl.sha256"] = "two words" }, "", "there is no sum of kubectl", true},
		"the archive lacks etcd": {func(files map[string]string) { replaceArchive(files) }, "", "unexpected EOF", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := officialFiles(t)
			c.change(files)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content, found := files[r.URL.Path]
				if !found {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(content))
			}))
			defer server.Close()
			t.Setenv(MirrorVariable, server.URL+"/")
			var progress bytes.Buffer
			var built []string
			b := fakeBuilder(t.TempDir(), &progress, func(t target) error {
				built = append(built, t.name)
				return nil
			})
			b.sets[pinnedSet] = moduleSet{key: "3"}
			b.downloads = Options{KubernetesVersion: "v1.37.2"}.downloads("v3.9.9")
			err := b.build(t.Context(), wanted)
			if (err != nil) != c.fails || !strings.Contains(fmt.Sprint(err)+progress.String(), c.says) {
				t.Errorf("got error %v and progress\n%s\nwant %q", err, progress.String(), c.says)
			}
			if diff := cmp.Diff(c.built, strings.Join(built, " ")); diff != "" {
				t.Errorf("compiled (-want +got):\n%s", diff)
			}
			for _, each := range wanted {
				content, err := os.ReadFile(filepath.Join(b.dir, "bin", each.name))
				if c.fails != (err != nil) || !c.fails && string(content) != each.name {
					t.Errorf("%s has %q: %v", each.name, content, err)
				}
			}
			if left, err := os.ReadDir(filepath.Join(b.dir, "partial")); err == nil {
				t.Errorf("%d files are left", len(left))
			}
		})
	}
}

// replaceArchive replaces the archive of etcd by a truncated one, with its sum.
func replaceArchive(files map[string]string) {
	for path, content := range files {
		if base := filepath.Base(path); strings.HasSuffix(base, ".tar.gz") {
			files[path] = content[:len(content)/2]
			files[filepath.Join(filepath.Dir(path), "SHA256SUMS")] = fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(files[path])), base)
		}
	}
}

// TestNoServer: without a network, binaries are built.
func TestNoServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // nothing listens at its address
	t.Setenv(MirrorVariable, server.URL)
	var progress bytes.Buffer
	b := fakeBuilder(t.TempDir(), &progress, func(target) error { return nil })
	b.downloads = Options{KubernetesVersion: "v1.37.2"}.downloads("v3.9.9")
	expect.NoError(t, b.build(t.Context(), []target{{name: "etcd", set: "one"}}))
	if !strings.Contains(progress.String(), "official binaries are not available, and are built instead: ") {
		t.Errorf("the progress does not say so:\n%s", progress.String())
	}
}

// TestPinnedEtcdIsDownloaded: the version of etcd in modules/ is known.
func TestPinnedEtcdIsDownloaded(t *testing.T) {
	sets, err := Options{KubernetesVersion: DefaultKubernetesVersion}.moduleSets()
	expect.NoError(t, err)
	if !strings.HasPrefix(sets[pinnedSet].etcd, "v3.") {
		t.Errorf("modules/go.mod has etcd %q", sets[pinnedSet].etcd)
	}
	t.Setenv(MirrorVariable, noMirror)
	if found := (Options{}).downloads("v3.9.9"); len(found) > 0 {
		t.Errorf("%s=none leaves %d downloads", MirrorVariable, len(found))
	}
}
