// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	}
	for _, step := range steps {
		compiled = nil
		step.change()
		if err := b.build(t.Context(), fakeTargets); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, compiled); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
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
	if err := errors.Join(errs[:]...); err != nil {
		t.Error(err)
	}
}

func TestFailedBuildIsRepeated(t *testing.T) {
	dir := t.TempDir()
	var progress bytes.Buffer
	failing := fakeBuilder(dir, &progress, func(target) error { return errors.New("syntax error") })
	err := failing.build(t.Context(), fakeTargets)
	if err == nil || !strings.Contains(err.Error(), "cannot build a: syntax error") {
		t.Errorf("got error %v, want one that names the binary and the cause", err)
	}
	if diff := cmp.Diff("building a\n", progress.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if missing := failing.missing(fakeTargets); len(missing) != 2 {
		t.Errorf("%d targets are missing after a failure, want 2", len(missing))
	}
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

func TestLockOnRemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() {})
	expect.NoError(t, err)
	second, err := lockFile(t.Context(), path, func() {
		// The second command finds the lock busy; its holder removes the file and releases the
		// lock.
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		unlock()
	})
	expect.NoError(t, err)
	defer second()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the lock that was taken has no file: %v", err)
	}
}

func TestControlPlaneNeedsFewerBinaries(t *testing.T) {
	var names []string
	for _, needed := range targetsFor(true) {
		names = append(names, needed.name)
	}
	if diff := cmp.Diff([]string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := len(targetsFor(false)); got != len(targets) {
		t.Errorf("a full node needs %d files, want all %d", got, len(targets))
	}
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
		if got := failure(said); got != want {
			t.Errorf("%q is told as %q, want %q", said, got, want)
		}
	}
}
