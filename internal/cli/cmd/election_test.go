// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// TestElection computes the longest time without a leader, and the shortest time between the end
// of a leader that cannot renew and the start of the next.
func TestElection(t *testing.T) {
	longestTry := time.Duration((1 + leaderelection.JitterFactor) * float64(retryPeriod))
	if without := longestTry + leaseDuration + longestTry; without >= 18*time.Second {
		t.Errorf("it takes up to %s, and what the API server needs, until a dead leader is succeeded: that must be less than 20s", without)
	}
	if between := leaseDuration - renewDeadline; between < 3*time.Second {
		t.Errorf("a leader that cannot renew ends only %s before another may begin", between)
	}
	if tries := renewDeadline / retryPeriod; tries < 5 {
		t.Errorf("a leader tries only %d times to renew before it gives up", tries)
	}
}

// TestLeaderElectionByDefault: without the flag, only one manager acts.
func TestLeaderElectionByDefault(t *testing.T) {
	flags := newManagerCommand().Flags()
	if elects, err := flags.GetBool("leader-elect"); err != nil || !elects {
		t.Errorf("a manager elects by default: %t, %v", elects, err)
	}
}

// TestSizeAdmissionByDefault: without the flag, API servers refuse objects that could make lists
// fail.
func TestSizeAdmissionByDefault(t *testing.T) {
	if flag := newManagerCommand().Flags().Lookup("size-admission"); flag == nil || flag.DefValue != "true" {
		t.Errorf("--size-admission is %+v", flag)
	}
}
