// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is the time that the process has spent on a CPU: clock_gettime(2). It
// stalls while others have the machine.
func clock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err) // Every Linux has this clock.
	}
	return time.Duration(now.Nano())
}
