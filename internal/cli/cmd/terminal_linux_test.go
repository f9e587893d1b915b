// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/overview"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestScreen: on a terminal, the output replaces the previous one, and is not larger than the
// terminal.
func TestScreen(t *testing.T) {
	near, far := pseudoterminal(t)
	expect.NoError(t, unix.IoctlSetWinsize(int(far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 5, Col: 80}))
	options := statusOptions{output: output{form: formTable}, now: time.Now}
	view := options.newView(far, io.Discard, true)
	defer view.stop()
	policy := policyWith(func(policy *v1alpha1.ConversionPolicy) {
		policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.RulesValidCondition, Status: metav1.ConditionTrue, Reason: "Valid"}}
	})
	one := overview.Of(overview.Observed{Policy: policy, Now: time.Now(), Program: pluginName})
	for i, want := range []string{clearAll + toTop, toTop} {
		expect.NoError(t, view.show([]*overview.Overview{one}, ""))
		got := shown(t, near, clearBelow)
		if !strings.HasPrefix(got, want) || i > 0 && strings.Contains(got, clearAll) {
			t.Errorf("picture %d is %q", i, got)
		}
		expect.Contains(t, "the picture", got, " more lines"+clearRight)
		expect.Equal(t, "lines of the picture", 4, strings.Count(got, "\n"))
	}
	expect.Equal(t, "what lasts is renewed", true, view.ticks() != nil)
}

// TestScreenWithoutSize: a terminal that does not know its size, as in some pipelines, gets everything.
func TestScreenWithoutSize(t *testing.T) {
	near, far := pseudoterminal(t)
	expect.NoError(t, unix.IoctlSetWinsize(int(far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{}))
	options := statusOptions{output: output{form: formTable}, now: time.Now}
	view := options.newView(far, io.Discard, true)
	defer view.stop()
	one := overview.Of(overview.Observed{Policy: policyWith(func(*v1alpha1.ConversionPolicy) {}), Now: time.Now(), Program: pluginName})
	expect.NoError(t, view.show([]*overview.Overview{one}, ""))
	if got := shown(t, near, clearBelow); !strings.Contains(got, "NotSeen") || strings.Contains(got, "more lines") {
		t.Errorf("the picture is %q", got)
	}
}

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
