// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// archiveSample archives the policy of the sample.
func archiveSample(t *testing.T) string {
	t.Helper()
	stdout, _, err := run("archive", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"))
	expect.NoError(t, err)
	return stdout
}

// TestArchiveChanged: rules that compile to another ruleset than the archived one convert nothing, until the user
// accepts them by their hash; nor does an archive without a hash.
func TestArchiveChanged(t *testing.T) {
	file := write(t, "archive.yaml", strings.ReplaceAll(archiveSample(t), "{host}:{port}", "{host}/{port}"))
	const object = `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"h/1"}`
	stdout, stderr, err := runWith(object, "convert", "--policy", file, "--to=v1")
	_, accept, _ := strings.Cut(strings.TrimSpace(stderr), "accept them with ")
	checkFailure(t, 2, stdout, stderr, err, file+" was archived with the ruleset ", "accept them with ")
	stdout, _, err = runWith(object, "convert", "--policy", file, "--to=v1", accept)
	checkEnd(t, 0, err, stdout, `"host":"h"`)
	file = write(t, "archive.yaml", regexp.MustCompile(archivedRuleset+`: \w+`).ReplaceAllLiteralString(archiveSample(t), archivedRuleset+`: ""`))
	stdout, stderr, err = runWith(object, "convert", "--policy", file, "--to=v1")
	checkFailure(t, 2, stdout, stderr, err, `archived with the ruleset ""`)
}

// backupOf returns a backup in the layout of Velero with one object of the sample, and one of another kind.
func backupOf(t *testing.T, object string) string {
	t.Helper()
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	for _, file := range [][2]string{
		{"metadata/version", "1.1.0\n"},
		{"resources/crontabs.example.com/namespaces/a/b.json", object},
		{"resources/crontabs.example.com/v1beta1-preferredversion/namespaces/a/b.json", object},
		{"resources/pods/namespaces/a/b.json", `{ "kind": "Pod" }`},
	} {
		expect.NoError(t, archive.WriteHeader(&tar.Header{Name: file[0], Size: int64(len(file[1])), Typeflag: tar.TypeReg, Mode: 0o755}))
		_, err := io.WriteString(archive, file[1])
		expect.NoError(t, err)
	}
	expect.NoError(t, errors.Join(archive.Close(), compressed.Close()))
	return text.String()
}

// TestConvertBackup converts a backup from stdin and from a file.
func TestConvertBackup(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rules := write(t, "archive.yaml", archiveSample(t))
	saved := backupOf(t, `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"h:1"}`)
	for name, args := range map[string][]string{"stdin": nil, "a file": {"-f", write(t, "b.tar.gz", saved)}} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := runWith(saved, append([]string{"convert", "--policy", rules, "--to=v1"}, args...)...)
			expect.NoError(t, err)
			expect.Equal(t, "stderr", "crontabs.example.com: objects converted to v1: 1, at v1 before: 0; other files, unchanged: 2\n", stderr)
			const converted = `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"host":"h","port":"1"}`
			want := []string{
				"metadata/version 1.1.0\n",
				"resources/crontabs.example.com/namespaces/a/b.json " + converted,
				"resources/crontabs.example.com/v1-preferredversion/namespaces/a/b.json " + converted,
				`resources/pods/namespaces/a/b.json { "kind": "Pod" }`,
			}
			expect.Equal(t, "backup", want, filesIn(t, stdout))
		})
	}
	checkNothingLeft(t)
}

// TestConvertBackupStops: a command that is interrupted writes nothing.
func TestConvertBackupStops(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stdout, _, err := runIn(ctx, strings.NewReader(""), "convert", "--policy", write(t, "archive.yaml", archiveSample(t)), "--to=v1", "-f", write(t, "b.tar.gz", backupOf(t, "{}")))
	if !errors.Is(err, context.Canceled) || ExitCode(err) != 2 || stdout != "" {
		t.Errorf("%v, and %d bytes on stdout", err, len(stdout))
	}
	checkNothingLeft(t)
}

func filesIn(t *testing.T, backup string) (files []string) {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(backup))
	expect.NoError(t, err)
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		expect.NoError(t, err)
		content, err := io.ReadAll(archive)
		expect.NoError(t, err)
		files = append(files, header.Name+" "+string(content))
	}
}

// checkNothingLeft: temporary files are removed.
func checkNothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	expect.NoError(t, err)
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "converted-") {
			t.Errorf("%s is left", entry.Name())
		}
	}
}

// TestConvertBackupFailures: on each error, nothing is written.
func TestConvertBackupFailures(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rules := write(t, "archive.yaml", archiveSample(t))
	saved := backupOf(t, `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"h:1"}`)
	for name, test := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"a truncated backup": {saved[:len(saved)-20], nil, 2, "in the backup: unexpected EOF"},
		"an unknown version": {
			backupOf(t, `{"apiVersion":"example.com/v7","kind":"CronTab","metadata":{}}`), nil, 1,
			"Error: objects in the backup cannot be converted, so nothing was written:\n  resources/crontabs.example.com/namespaces/a/b.json: version \"v7\" is not in the ruleset",
		},
		"no JSON":            {backupOf(t, `{"apiVersion":`), nil, 1, "so nothing was written:\n  resources/crontabs.example.com/namespaces/a/b.json: "},
		"a form":             {saved, []string{"-o=json"}, 2, "-o is for objects: a backup keeps its format"},
		"two inputs":         {saved, []string{"-f=-", "-f", rules}, 2, "stdin is a backup: convert it alone, without other files"},
		"no temporary files": {saved, nil, 2, "create a temporary file: "},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no temporary files" {
				t.Setenv("TMPDIR", "/dev/null/nowhere")
			}
			stdout, stderr, err := runWith(test.stdin, append([]string{"convert", "--policy", rules, "--to=v1"}, test.args...)...)
			checkFailure(t, test.code, stdout, stderr, err, test.want)
		})
	}
	checkNothingLeft(t)
}
