// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package measure

import "time"

var start = time.Now()

// clock returns wall-clock time, where no CPU clock is known to work.
func clock() time.Duration { return time.Since(start) }
