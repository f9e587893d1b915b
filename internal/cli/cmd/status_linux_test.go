// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"io"
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
		policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.RulesValidCondition, Status: metav1.ConditionTrue, Reason: "Compiled"}}
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
