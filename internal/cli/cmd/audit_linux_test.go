// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestAuditColors: output to a terminal has colours, unless NO_COLOR is set.
func TestAuditColors(t *testing.T) {
	file := write(t, "bad.yaml", lossy)
	for noColor, want := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", noColor)
		near, far := pseudoterminal(t)
		root := NewRootCommand()
		root.SetOut(far)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs([]string{"audit", "-f", file})
		expect.Equal(t, "exit code", 1, ExitCode(root.Execute()))
		expect.NoError(t, far.Close())
		text := shown(t, near, "")
		expect.Equal(t, fmt.Sprintf("colors with NO_COLOR=%q of\n%s", noColor, text), want, strings.Contains(text, "\x1b["))
	}
}

// pseudoterminal has two ends: what is written to its far end is read at its near one.
func pseudoterminal(t *testing.T) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	expect.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	expect.NoError(t, unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	expect.NoError(t, err)
	far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	expect.NoError(t, err)
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}

// shown is what comes out of the near end up to the last text, or, without one, until
// the far end is closed. What is written at once may come in parts.
func shown(t *testing.T, near *os.File, last string) string {
	t.Helper()
	var text []byte
	for part := make([]byte, 4096); last == "" || !bytes.HasSuffix(text, []byte(last)); {
		n, err := near.Read(part)
		text = append(text, part[:n]...)
		if errors.Is(err, unix.EIO) && last == "" {
			break
		}
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
	}
	return string(text)
}
