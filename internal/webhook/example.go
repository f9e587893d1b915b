// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync/atomic"
	"time"
)

// exampleEvery is how often one of many failures is shown to everybody: often
// enough to see what goes wrong, and seldom enough for a kind with a million
// broken objects, which an API server may ask for again and again.
const exampleEvery = time.Minute

// examples chooses them.
type examples struct{ next atomic.Int64 }

// level is the verbosity of the log at which something that happened now is
// worth a line: 0 for the first in a while, 1 for all others.
func (e *examples) level(now time.Time) int {
	next := e.next.Load()
	if now.UnixNano() >= next && e.next.CompareAndSwap(next, now.Add(exampleEvery).UnixNano()) {
		return 0
	}
	return 1
}
