// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// fakeBuilder returns a builder whose compiler only writes files.
func fakeBuilder(dir string, progress *bytes.Buffer, compile func(target) error) builder {
	return builder{
		dir:      dir,
		sets:     map[string]moduleSet{"one": {key: "1"}, "two": {key: "2"}},
		progress: progress,
		compile: func(_ context.Context, group []target, dir string) error {
			for _, t := range group {
				if err := errors.Join(compile(t), os.WriteFile(filepath.Join(dir, t.name), []byte(t.name), 0o755)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

var fakeTargets = []target{{name: "a", set: "one"}, {name: "b", set: "two"}}

func TestBuildCompilesOnlyWhatChanged(t *testing.T) {
	dir := t.TempDir()
	var compiled []string
	b := fakeBuilder(dir, &bytes.Buffer{}, func(t target) error {
		compiled = append(compiled, t.name)
		return nil
	})
	steps := []struct {
		name   string
		change func()
		want   []string
	}{
		{"everything at first", func() {}, []string{"a", "b"}},
		{"nothing the second time", func() {}, nil},
		{"the binaries of a changed module set", func() { b.sets["two"] = moduleSet{key: "changed"} }, []string{"b"}},
		{"a binary that was removed", func() { _ = os.Remove(filepath.Join(dir, "bin", "a")) }, []string{"a"}},
		{"a truncated binary", func() { _ = os.Truncate(filepath.Join(dir, "bin", "a"), 0) }, []string{"a"}},
		{"a binary that cannot run", func() { _ = os.Chmod(filepath.Join(dir, "bin", "b"), 0o644) }, []string{"b"}},
		{"an incomplete stamp", func() { _ = os.Truncate(filepath.Join(dir, "stamps", "b.txt"), 3) }, []string{"b"}},
	}
	for _, step := range steps {
		compiled = nil
		step.change()
		if err := b.build(t.Context(), fakeTargets); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		expect.Equal(t, step.name, step.want, compiled)
	}
}

func TestConcurrentBuilds(t *testing.T) {
	dir := t.TempDir()
	inside, proceed := make(chan struct{}), make(chan struct{})
	first := fakeBuilder(dir, &bytes.Buffer{}, func(t target) error {
		if t.name == "a" {
			close(inside)
			<-proceed
		}
		return nil
	})
	waiting := make(chan struct{})
	second := fakeBuilder(dir, nil, func(t target) error {
		return errors.New("the second build compiled " + t.name)
	})
	second.progress = writerFunc(func(text []byte) {
		if strings.HasPrefix(string(text), "waiting for another build") {
			close(waiting)
		}
	})

	var builds sync.WaitGroup
	var errs [2]error
	builds.Go(func() { errs[0] = first.build(t.Context(), fakeTargets) })
	<-inside
	builds.Go(func() { errs[1] = second.build(t.Context(), fakeTargets) })
	<-waiting
	close(proceed)
	builds.Wait()
	expect.NoError(t, errors.Join(errs[:]...))
}

func TestFailedBuildIsRepeated(t *testing.T) {
	dir := t.TempDir()
	var progress bytes.Buffer
	failing := fakeBuilder(dir, &progress, func(target) error { return errors.New("syntax error") })
	err := failing.build(t.Context(), fakeTargets)
	expect.Contains(t, "error", fmt.Sprint(err), "cannot build a: syntax error")
	expect.Equal(t, "progress", "building a\n", progress.String())
	expect.Equal(t, "number of missing targets after a failure", 2, len(failing.missing(fakeTargets)))
}

func TestLockCanceled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() { t.Error("a free lock was busy") })
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lockFile(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
	unlock()
	again, err := lockFile(t.Context(), path, func() { t.Error("a released lock was busy") })
	expect.NoError(t, err)
	again()
}

func TestProcessNodesNeedFewerBinaries(t *testing.T) {
	var names []string
	for _, needed := range (Options{ProcessNodes: 1}).targets() {
		names = append(names, needed.name)
	}
	expect.Equal(t, "names", []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler"}, names)
	expect.Equal(t, "number of files for a full node", len(targets), len(Options{}.targets()))
}

type writerFunc func([]byte)

func (f writerFunc) Write(text []byte) (int, error) {
	f(text)
	return len(text), nil
}

// TestFailure: a cause outside of the code is one line with advice, and any other the end of the output.
func TestFailure(t *testing.T) {
	for said, want := range map[string]string{
		"# k8s.io/x\na: write /cache/a: no space left on device\nb: write /cache/b: no space left on device\n": ": a: write /cache/a: no space left on device: free some space, or set GOCACHE, TMPDIR and LOCALCLUSTER_CACHE to folders with 5 GiB",
		"go: downloading a v1\na.go:1:2: module lookup disabled by GOPROXY=off\n":                              ": a.go:1:2: module lookup disabled by GOPROXY=off: allow the download of Go modules by GOPROXY",
		"a.go:1:2: undefined: b\n": "\na.go:1:2: undefined: b",
	} {
		expect.Equal(t, said, want, failure(said))
	}
}

func TestImageArchive(t *testing.T) {
	var archive, again bytes.Buffer
	for _, w := range []io.Writer{&archive, &again} {
		expect.NoError(t, writeImage(w, "local/test:1", "test", []byte("program")))
	}
	expect.Equal(t, "archive of the same program", archive.Bytes(), again.Bytes())
	files := readTar(t, &archive)
	layer := files["layer.tar"]
	config := mustJSON(t, map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/test"}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	want := map[string][]byte{
		"manifest.json": mustJSON(t, []any{map[string]any{"Config": configName, "RepoTags": []string{"local/test:1"}, "Layers": []string{"layer.tar"}}}),
		configName:      config,
		"layer.tar":     layer,
	}
	expect.Equal(t, "files", want, files)
	expect.Equal(t, "layer", map[string][]byte{"test": []byte("program")}, readTar(t, bytes.NewReader(layer)))
}

func readTar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		expect.NoError(t, err)
		files[header.Name], err = io.ReadAll(archive)
		expect.NoError(t, err)
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	expect.NoError(t, err)
	return data
}

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
		"there is no server":     {func(files map[string]string) { files["server"] = "http://127.0.0.1:1" }, "etcd kube-apiserver kubectl containerd", "binaries are not available, and are built instead: ", false},
		"one was changed":        {func(files map[string]string) { files[kubernetes+"kubectl"] += "!" }, "", "kubectl has the SHA-256 sum ", true},
		"a sum is missing":       {func(files map[string]string) { files[kubernetes+"kubectl.sha256"] = "two words" }, "", "there is no sum of kubectl", true},
		"the archive lacks etcd": {func(files map[string]string) { replaceArchive(files) }, "", "unexpected EOF", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := officialFiles(t)
			c.change(files)
			served := fstest.MapFS{}
			for path, content := range files {
				served[strings.TrimPrefix(path, "/")] = &fstest.MapFile{Data: []byte(content)}
			}
			server := httptest.NewServer(http.FileServerFS(served))
			defer server.Close()
			t.Setenv(MirrorVariable, cmp.Or(files["server"], server.URL)+"/")
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
			expect.Equal(t, "compiled", c.built, strings.Join(built, " "))
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

func TestDownloadWithoutSpace(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is a device of Linux")
	}
	server := httptest.NewServer(http.FileServerFS(fstest.MapFS{"a": {Data: []byte("a")}, "sum": {Data: fmt.Appendf(nil, "%x", sha256.Sum256([]byte("a")))}}))
	defer server.Close()
	var progress bytes.Buffer
	err := download{server.URL + "/a", server.URL + "/sum"}.get(t.Context(), server.Client(), "a", "/dev/full", &progress)
	expect.Equal(t, "error", "write /dev/full: no space left on device: free some space, or set LOCALCLUSTER_CACHE to a folder with 2 GiB", fmt.Sprint(err))
	expect.Equal(t, "progress", "", progress.String())
}

// TestInterruptedDownload: it is no reason to build.
func TestInterruptedDownload(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer server.Close()
	b := builder{progress: io.Discard, downloads: map[string]download{"a": {server.URL, server.URL}}}
	if _, err := b.fetch(ctx, []target{{name: "a"}}, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
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

// TestPinnedEtcdIsDownloaded: the version of etcd in modules/ is known.
func TestPinnedEtcdIsDownloaded(t *testing.T) {
	sets, err := Options{KubernetesVersion: DefaultKubernetesVersion}.moduleSets()
	expect.NoError(t, err)
	if !strings.HasPrefix(sets[pinnedSet].etcd, "v3.") {
		t.Errorf("modules/go.mod has etcd %q", sets[pinnedSet].etcd)
	}
	t.Setenv(MirrorVariable, noMirror)
	expect.Equal(t, "number of downloads with "+MirrorVariable+"=none", 0, len(Options{}.downloads("v3.9.9")))
}
