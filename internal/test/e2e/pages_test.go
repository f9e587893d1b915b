//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/pages"
)

// TestGettingStarted does what the page of that name tells newcomers to do, and
// sees what it shows.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	page, err := pages.Read(teller.Dir, pages.Folder+"/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, "databases.shop.example.com") })        // where it ends in the middle
	program := filepath.Join(teller.Dir, "bin", "linux-"+runtime.GOARCH) // make image builds it
	player := &pages.Player{Folder: t.TempDir(), Environment: []string{"PATH=" + program + ":" + os.Getenv("PATH")}, Out: t.Output()}
	if err := player.Play(t.Context(), page); err != nil {
		t.Fatal(err)
	}
}
