// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestUsageOf: children are found by program and subcommand, and what they use is read.
func TestUsageOf(t *testing.T) {
	for range 2 {
		child := exec.CommandContext(t.Context(), "sh", "/dev/stdin")
		child.Stdin = strings.NewReader("while :; do :; done")
		expect.NoError(t, child.Start())
		defer func() { _ = child.Wait() }()
		defer func() { _ = child.Process.Kill() }()
	}
	var u Usage
	for start := time.Now(); u.CPU < 30*time.Millisecond || u.Processes < 2; {
		var err error
		if u, err = UsageOf("sh /dev/stdin"); time.Since(start) > time.Minute {
			t.Fatalf("%+v, %v", u, err)
		}
	}
	if u.Processes != 2 || u.Resident <= 0 || u.Anonymous <= 0 || u.Anonymous > u.Resident || u.Peak < u.Resident/2 {
		t.Errorf("unlikely: %+v", u)
	}
	if _, err := UsageOf("no-such-program"); err == nil {
		t.Error("a program that does not run uses something")
	}
}
