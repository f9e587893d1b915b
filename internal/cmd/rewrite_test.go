// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/conversion-operator/conversion-operator/internal/manifest"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const rewritePolicy = "../rewrite/testdata/policy.yaml"

// rewriteIn copies a folder of testdata, and runs the command on the copy.
func rewriteIn(t *testing.T, folder string, args ...string) (copied, stdout, stderr string, code int) {
	t.Helper()
	copied = t.TempDir()
	expect.NoError(t, os.CopyFS(copied, os.DirFS(folder)))
	stdout, stderr, code = runRewrite(t, "", append(args, "-f", copied)...)
	return copied, stdout, stderr, code
}

func runRewrite(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, err := runWith(stdin, append([]string{"rewrite", "--policy", rewritePolicy, "--crd", rewritePolicy}, args...)...)
	return stdout, stderr, ExitCode(err)
}

// TestRewriteKustomize: kustomize makes of a rewritten repository what the conversion makes of its
// former result.
func TestRewriteKustomize(t *testing.T) {
	t.Parallel()
	before := built(t, "../rewrite/testdata/kustomize")
	folder, stdout, stderr, code := rewriteIn(t, "../rewrite/testdata/kustomize", "--to", "v1")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	converted, stderr, code := runRewrite(t, before, "--to", "v1", "-f", "-")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if after := built(t, folder); !reflect.DeepEqual(spec(t, after), spec(t, converted)) {
		t.Errorf("kustomize makes\n%s\nof the rewritten repository, and should make\n%s", after, converted)
	}
	_, stderr, code = runRewrite(t, "", "--to", "v1", "-f", folder, "--check")
	if code != 0 {
		t.Errorf("a second time, the command finds something: %s", stderr)
	}
}

func built(t *testing.T, folder string) string {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	expect.NoError(t, err)
	text, err := resources.AsYaml()
	expect.NoError(t, err)
	return string(text)
}

func spec(t *testing.T, text string) any {
	t.Helper()
	documents, err := manifest.Parse("a manifest", []byte(text))
	expect.NoError(t, err)
	return expect.JSON(t, documents[0].JSON)
}

// TestRewriteFiles: --dry-run and --check change nothing; without them, files keep their permissions,
// and manifests that stay are named with their line.
func TestRewriteFiles(t *testing.T) {
	t.Parallel()
	read := func(folder, name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		expect.NoError(t, err)
		return string(text)
	}
	const manifests = "../rewrite/testdata/manifests"
	for _, flag := range []string{"--dry-run", "--check"} {
		folder, stdout, _, code := rewriteIn(t, manifests, "--to", "v1", flag)
		if code != exitFound || read(folder, "comments.yaml") != read(manifests, "comments.yaml") {
			t.Errorf("%s: exit code %d, and the file may have changed", flag, code)
		}
		if isDiff := strings.Contains(stdout, "\n+  listeners: # ask the network team"); isDiff != (flag == "--dry-run") {
			t.Errorf("%s writes\n%s", flag, stdout)
		}
	}
	folder := t.TempDir()
	expect.NoError(t, os.CopyFS(folder, os.DirFS(manifests)))
	executable := filepath.Join(folder, "comments.yaml")
	expect.NoError(t, os.Chmod(executable, 0o751)) //nolint:gosec // it is to be kept
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "binary.yaml"), []byte("example.com/v1beta1\x00"), 0o600))
	expect.NoError(t, os.Symlink("comments.yaml", filepath.Join(folder, "link.yaml")))
	stdout, _, code := runRewrite(t, "", "--to", "v1", "-f", folder)
	if code != exitFound {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"comments.yaml: 2 objects rewritten\n",
		"anchors.yaml:53: lossy stays at v1beta1: .spec.note: version v1 cannot express it: v1 has no such field\n",
		"tabs.yaml:4: this is not YAML: found character that cannot start any token\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	info, err := os.Lstat(executable)
	expect.NoError(t, err)
	if info.Mode() != 0o751 {
		t.Errorf("the permissions of a file became %v", info.Mode())
	}
	if entries, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(entries) > 0 {
		t.Errorf("temporary files are left: %v %v", entries, err)
	}
	if text := read(folder, "link.yaml"); !strings.Contains(text, "apiVersion: example.com/v1 ") {
		t.Errorf("behind the link is\n%s", text)
	}
}

// TestRewriteReports: the formats for programs name files and lines.
func TestRewriteReports(t *testing.T) {
	t.Parallel()
	const file = "../rewrite/testdata/manifests/anchors.yaml"
	stdout, _, code := runRewrite(t, "", "--to", "v1", "-f", file, "--check", "-o", "sarif")
	if code != exitFound {
		t.Errorf("exit code %d", code)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &log))
	found := map[int]string{}
	for _, result := range log.Runs[0].Results {
		place := result.Locations[0].PhysicalLocation
		if place.ArtifactLocation.URI != file {
			t.Errorf("a result is in %q", place.ArtifactLocation.URI)
		}
		found[place.Region.StartLine] = result.RuleID
	}
	want := map[int]string{1: "ManifestOld", 18: "ManifestOld", 34: "ManifestOld", 41: "ManifestLeft", 53: "ManifestLeft"}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("findings are at %v", found)
	}
	stdout, _, _ = runRewrite(t, "", "--to", "v1", "-f", file, "--check", "-o", "json")
	report, err := preserved.Decode([]byte(stdout))
	expect.NoError(t, err)
	if files, _ := report.(map[string]any)["files"].([]any); len(files) != 1 {
		t.Errorf("the report is %s", stdout)
	}
}

// TestReplaceFile: a file that another program changes meanwhile stays.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	expect.NoError(t, os.WriteFile(file, []byte("changed"), 0o600))
	if err := replaceFile(file, []byte("before"), []byte("after")); err == nil || !strings.Contains(err.Error(), "has changed meanwhile") {
		t.Errorf("it says %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v %v", entries, err)
	}
}
