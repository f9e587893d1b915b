//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/pages"
	"github.com/conversion-operator/conversion-operator/internal/test/story"
)

// TestGettingStarted does what the page of that name tells newcomers to do, and
// sees what it shows.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { remove(t, "databases.shop.example.com") }) // where it ends in the middle
	play(t, "getting-started.md", t.TempDir())
}

// TestRetiring does what the page of that name tells: the storage version moves, and
// the old version goes step by step, and once back. Meanwhile an object is read all
// the time, and in the end etcd has all of them in the new version.
func TestRetiring(t *testing.T) {
	t.Parallel()
	ctx, folder := t.Context(), t.TempDir()
	crontab := inGroup(t, "batch.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	for _, file := range []string{crontab.Policy, crontab.Objects} {
		path := filepath.Join(folder, file)
		if err := os.WriteFile(path, []byte(readSample(t, crontab, file)), 0o600); err != nil {
			t.Fatal(err)
		}
		run(ctx, t, "kubectl", "apply", "-f", path)
		waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	}
	reader := fleet.Read(ctx, crontab.At(crontab.New), crontab.Name, func(object *unstructuredObject) error {
		if host := object.Object["host"]; host != "localhost" {
			return fmt.Errorf("host is %v", host)
		}
		return nil
	})
	play(t, "retiring.md", folder)
	if reads, err := reader.Stop(); err != nil || reads == 0 {
		t.Errorf("%d reads, and then: %v", reads, err)
	}
	stored, err := story.ReadStored(ctx, crontab.Group, "crontabs")
	if err != nil {
		t.Fatal(err)
	}
	if stored == nil {
		return // etcd cannot be read here
	}
	if t.Logf("stored: %s", stored); !stored.Only(crontab.Group + "/" + crontab.New) {
		t.Errorf("stored: %s, want all at %s", stored, crontab.New)
	}
}

// play types a page's commands, with the operator's own program on the PATH.
func play(t *testing.T, name, folder string) {
	t.Helper()
	page, err := pages.Read(teller.Dir, pages.Folder+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(teller.Dir, "bin", "linux-"+runtime.GOARCH) // make image builds it
	player := &pages.Player{Folder: folder, Environment: []string{"PATH=" + program + ":" + os.Getenv("PATH")}, Out: t.Output()}
	if err := player.Play(t.Context(), page); err != nil {
		t.Fatal(err)
	}
}
