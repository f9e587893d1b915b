// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitForSlowWork: changes prolong a wait, but not forever.
func TestWaitForSlowWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := func() (bool, string) {
			minutes := int(time.Since(began).Minutes())
			return minutes == 2, strconv.Itoa(minutes)
		}
		if waited, done, seen := wait(90*time.Second, slow); !done {
			t.Errorf("after %s done is %t, seen is %s", waited, done, seen)
		}
		began = time.Now()
		waited, done, _ := wait(time.Minute, func() (bool, string) { return false, time.Since(began).String() })
		if done || waited < 3*time.Minute || waited > 5*time.Minute {
			t.Errorf("after %s done is %t", waited, done)
		}
	})
}
