// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var root = filepath.Join("..", "..", "..")

// all reads the README and every page of the folder.
func all(t *testing.T) []*Page {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, Folder, "*.md"))
	if err != nil || len(files) < 10 {
		t.Fatalf("only %d pages were found: %v", len(files), err)
	}
	pages := make([]*Page, 1+len(files))
	for i, file := range append([]string{"README.md"}, files...) {
		if i > 0 {
			file = path.Join(Folder, filepath.Base(file))
		}
		pages[i], err = Read(root, file)
		expect.NoError(t, err)
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

var betweenDocuments = regexp.MustCompile(`(?m)^---\n`)

// TestYAML: YAML on the pages is valid, and a ConversionPolicy or a ConverterFleet has no unknown
// field.
func TestYAML(t *testing.T) {
	policies := 0
	for _, page := range all(t) {
		for _, block := range page.Blocks {
			if block.Language != "yaml" {
				continue
			}
			for _, text := range betweenDocuments.Split(block.Text, -1) {
				if err := yaml.Unmarshal([]byte(text), new(any)); err != nil {
					t.Errorf("%s, block of line %d: %v", page.Path, block.Line, err)
				}
				var into any = &v1alpha1.ConversionPolicy{}
				switch {
				case strings.Contains(text, "…"):
					continue
				case strings.Contains(text, "kind: ConversionPolicy\n"):
					policies++
				case strings.Contains(text, "kind: ConverterFleet\n"):
					into = &v1alpha1.ConverterFleet{}
				default:
					continue
				}
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Errorf("%s, block of line %d: %v", page.Path, block.Line, err)
				}
			}
		}
	}
	if policies < 5 {
		t.Errorf("only %d policies were found", policies)
	}
}

// TestRetirementMatchesSample: the page's policy equals the sample's, for another group.
func TestRetirementMatchesSample(t *testing.T) {
	sample, err := os.ReadFile(filepath.Join(root, "config/samples/crontab-hostport/5-policy-retirement.yaml"))
	expect.NoError(t, err)
	page, err := Read(root, Folder+"/retiring.md")
	expect.NoError(t, err)
	at := slices.IndexFunc(page.Blocks, func(block Block) bool { return block.File() == "policy.yaml" })
	if at < 0 {
		t.Fatal("the page has no policy.yaml")
	}
	var want, got v1alpha1.ConversionPolicy
	for text, into := range map[string]*v1alpha1.ConversionPolicy{string(sample): &want, page.Blocks[at].Text: &got} {
		expect.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	}
	expect.Equal(t, "the policy of the page, which is the sample,", want.Spec, got.Spec)
}
