// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var root = filepath.Join("..", "..", "..")

func all(t *testing.T) []*Page {
	t.Helper()
	pages, err := All(root)
	expect.NoError(t, err)
	if len(pages) < 10 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	return pages
}

// TestLinks: every link leads to an existing file or heading.
func TestLinks(t *testing.T) {
	links := 0
	for _, page := range all(t) {
		for _, link := range page.Links() {
			if strings.Contains(link.Text, "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link.Text, "#")
			target := page
			if file != "" {
				name := path.Join(path.Dir(page.Path), file)
				if _, err := os.Stat(filepath.Join(root, name)); err != nil {
					t.Errorf("%s:%d: %s is not there", page.Path, link.Line, name)
					continue
				}
				if anchor == "" {
					continue
				}
				var err error
				if target, err = Read(root, name); err != nil {
					t.Fatal(err)
				}
			}
			if !target.Anchors()[anchor] {
				t.Errorf("%s:%d: %s has no heading #%s", page.Path, link.Line, target.Path, anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// TestIndex: the index links to every page, and the README to the index.
func TestIndex(t *testing.T) {
	linked := map[string]bool{}
	pages := all(t)
	for _, page := range pages {
		if page.Path != Folder+"/README.md" && page.Path != "README.md" {
			continue
		}
		for _, link := range page.Links() {
			file, _, _ := strings.Cut(link.Text, "#")
			if target := path.Join(path.Dir(page.Path), file); page.Path != "README.md" || target == Folder+"/README.md" {
				linked[target] = true
			}
		}
	}
	for _, page := range pages {
		if page.Path != "README.md" && !linked[page.Path] {
			t.Errorf("nothing leads to %s", page.Path)
		}
	}
}

// TestDecisions: the list of decisions has every decision.
func TestDecisions(t *testing.T) {
	const folder = "internal/decisions"
	list, err := Read(root, folder+"/README.md")
	expect.NoError(t, err)
	listed := map[string]bool{"README.md": true}
	for _, link := range list.Links() {
		listed[link.Text] = true
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !listed[name] {
			t.Errorf("%s/README.md does not lead to %s", folder, name)
		}
	}
}
