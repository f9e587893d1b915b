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
	read := func(folder, name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		expect.NoError(t, err)
		return string(text)
	}
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
