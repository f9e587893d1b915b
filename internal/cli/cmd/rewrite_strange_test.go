// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const oldGateway = "apiVersion: example.com/v1beta1\nkind: Gateway\nmetadata: {name: a}\nspec: {replicas: 2}\n"

// write writes files into a new folder.
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
		text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		expect.NoError(t, err)
		want := strings.Replace(kustomization, "v1beta1", test.version, 1)
		expect.Equal(t, "the kustomization, with a patch of "+test.field, want, string(text))
		if _, _, code := runRewrite(t, "", "--to", "v1", "-f", folder, "--check"); (code == 0) != (test.version == "v1") {
			t.Errorf("with a patch of %s, a second time: exit code %d", test.field, code)
		}
	}
}
