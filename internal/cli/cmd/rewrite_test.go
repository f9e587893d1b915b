// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
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
	expect.Equal(t, "exit code, after "+stdout+stderr, 0, code)
	converted, stderr, code := runRewrite(t, before, "--to", "v1", "-f", "-")
	expect.Equal(t, "exit code, after "+stderr, 0, code)
	expect.Equal(t, "what kustomize makes of the rewritten repository", spec(t, converted), spec(t, built(t, folder)))
	_, stderr, code = runRewrite(t, "", "--to", "v1", "-f", folder, "--check")
	expect.Equal(t, "exit code a second time, after "+stderr, 0, code)
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
	read := func(folder, name string) string { return readFile(t, filepath.Join(folder, name)) }
	const manifests = "../rewrite/testdata/manifests"
	for _, flag := range []string{"--dry-run", "--check"} {
		folder, stdout, _, code := rewriteIn(t, manifests, "--to", "v1", flag)
		expect.Equal(t, flag+": exit code", exitFound, code)
		expect.Equal(t, flag+": the file", read(manifests, "comments.yaml"), read(folder, "comments.yaml"))
		isDiff := strings.Contains(stdout, "\n+  listeners: # ask the network team")
		expect.Equal(t, flag+" writes a diff:\n"+stdout, flag == "--dry-run", isDiff)
	}
	folder := t.TempDir()
	expect.NoError(t, os.CopyFS(folder, os.DirFS(manifests)))
	executable := filepath.Join(folder, "comments.yaml")
	expect.NoError(t, os.Chmod(executable, 0o751)) //nolint:gosec // it is to be kept
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "binary.yaml"), []byte("example.com/v1beta1\x00"), 0o600))
	expect.NoError(t, os.Symlink("comments.yaml", filepath.Join(folder, "link.yaml")))
	stdout, _, code := runRewrite(t, "", "--to", "v1", "-f", folder)
	expect.Equal(t, "exit code", exitFound, code)
	expect.Contains(t, "stdout", stdout,
		"comments.yaml: 2 objects rewritten\n",
		"anchors.yaml:53: lossy stays at v1beta1: .spec.note: version v1 cannot express it: v1 has no such field\n",
		"tabs.yaml:4: this is not YAML: found character that cannot start any token\n",
	)
	info, err := os.Lstat(executable)
	expect.NoError(t, err)
	expect.Equal(t, "the permissions of a file became", 0o751, info.Mode())
	if entries, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(entries) > 0 {
		t.Errorf("temporary files are left: %v %v", entries, err)
	}
	expect.Contains(t, "the file behind the link", read(folder, "link.yaml"), "apiVersion: example.com/v1 ")
}

// TestReplaceFile: a file that another program changes meanwhile stays.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	expect.NoError(t, os.WriteFile(file, []byte("changed"), 0o600))
	expect.Contains(t, "the error", fmt.Sprint(replaceFile(file, []byte("before"), []byte("after"))), "has changed meanwhile")
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v %v", entries, err)
	}
}

const oldGateway = "apiVersion: example.com/v1beta1\nkind: Gateway\nmetadata: {name: a}\nspec: {replicas: 2}\n"

// writeFiles writes files into a new folder.
func writeFiles(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range files {
		expect.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o750))
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

// TestRewriteLinkedFolder: a folder of the command line may be a symbolic link.
func TestRewriteLinkedFolder(t *testing.T) {
	t.Parallel()
	folder := writeFiles(t, map[string]string{"apps/.hidden/gateway.yaml": oldGateway})
	link := filepath.Join(folder, "link")
	expect.NoError(t, os.Symlink("apps", link))
	stdout, _, code := runRewrite(t, "", "--to", "v1", "--check", "-f", link)
	if want := filepath.Join(link, ".hidden/gateway.yaml") + ": 1 object to rewrite\n"; code != exitFound || !strings.HasPrefix(stdout, want) {
		t.Errorf("exit code %d, and\n%s\ninstead of\n%s", code, stdout, want)
	}
}

// TestRewriteUTF16: a text that kubectl reads and the command does not is named.
func TestRewriteUTF16(t *testing.T) {
	t.Parallel()
	encoded := "\xff\xfe" + strings.Join(strings.Split(oldGateway, ""), "\x00") + "\x00"
	folder := writeFiles(t, map[string]string{"gateway.yaml": encoded})
	stdout, _, code := runRewrite(t, "", "--to", "v1", "-f", folder)
	expect.Equal(t, "exit code", exitFound, code)
	expect.Contains(t, "stdout", stdout, "gateway.yaml:1: the file is in UTF-16: ")
	stdout, stderr, code := runRewrite(t, encoded, "--to", "v1", "-f", "-")
	expect.Equal(t, "exit code and stdout", []any{exitFound, encoded}, []any{code, stdout})
	expect.Contains(t, "stderr", stderr, "stdin:1: the file is in UTF-16: ")
}

// TestRewriteTargetOfPatch: a kustomization keeps the version of a target if the patch in a file stays.
func TestRewriteTargetOfPatch(t *testing.T) {
	t.Parallel()
	const kustomization = "patches:\n- path: patch.yaml\n  target: {group: example.com, version: v1beta1, kind: Gateway}\n"
	for _, test := range []struct{ field, version string }{{"note", "v1beta1"}, {"image", "v1"}} {
		folder := writeFiles(t, map[string]string{
			"kustomization.yaml": kustomization,
			"patch.yaml":         "- {op: remove, path: /spec/" + test.field + "}\n",
		})
		runRewrite(t, "", "--to", "v1", "-f", folder)
		want := strings.Replace(kustomization, "v1beta1", test.version, 1)
		expect.Equal(t, "the kustomization, with a patch of "+test.field, want, readFile(t, filepath.Join(folder, "kustomization.yaml")))
		if _, _, code := runRewrite(t, "", "--to", "v1", "-f", folder, "--check"); (code == 0) != (test.version == "v1") {
			t.Errorf("with a patch of %s, a second time: exit code %d", test.field, code)
		}
	}
}
