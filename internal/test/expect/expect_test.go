// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"errors"
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

// TestLastError: an error that the deadline caused is reported only if there is no other.
func TestLastError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := []error{errors.New("the first"), errors.New("the second"), context.Canceled, nil}
	try := lastError(ctx, func(context.Context) error {
		err := errs[0]
		errs = errs[1:]
		return err
	})
	var got []string
	for i := range 4 {
		if i == 2 {
			cancel()
		}
		_, seen := try()
		got = append(got, seen)
	}
	Equal(t, "errors", []string{"the first", "the second", "the second", "<nil>"}, got)
	_, seen := lastError(ctx, context.Context.Err)()
	Equal(t, "the only error", "context canceled", seen)
}
