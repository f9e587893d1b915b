// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// pipe returns the file name of a pipe with a text, as <(COMMAND) does in a shell.
func pipe(t *testing.T, text string) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	expect.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	_, err = io.WriteString(writer, text)
	expect.NoError(t, err)
	expect.NoError(t, writer.Close())
	return fmt.Sprintf("/dev/fd/%d", reader.Fd())
}

// TestConvertPipe: objects, and an archive, may come from a pipe, which can be read only once.
func TestConvertPipe(t *testing.T) {
	t.Parallel()
	objects := pipe(t, "apiVersion: example.com/v1beta1\nkind: CronTab\nhostPort: h:1\n")
	stdout, stderr, err := runWith("", "convert", "--policy", pipe(t, archiveSample(t)), "--to=v1", "-f", objects)
	const want = "apiVersion: example.com/v1\nkind: CronTab\nhost: h\nport: \"1\"\nmetadata: {}\n"
	expect.NoError(t, err)
	expect.Equal(t, "output", want, stdout+stderr)
}

// checkingWriter checks the folder of temporary files when something is written.
type checkingWriter struct{ t *testing.T }

func (w checkingWriter) Write(p []byte) (int, error) {
	checkNothingLeft(w.t)
	return len(p), nil
}

// TestConvertBackupToClosedPipe: a pipe that its reader closes ends the command while it writes, and no temporary
// file stays.
func TestConvertBackupToClosedPipe(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	root := NewRootCommand()
	root.SetOut(checkingWriter{t})
	root.SetErr(io.Discard)
	saved := backupOf(t, `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"h:1"}`)
	root.SetArgs([]string{"convert", "--policy", write(t, "archive.yaml", archiveSample(t)), "--to=v1", "-f", write(t, "b.tar.gz", saved)})
	expect.NoError(t, root.Execute())
}
