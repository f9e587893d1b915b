// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the shortest of the spans that at least a part of them does not exceed: 0.5 for
// the median, 0.99 for the 99th percentile. There must be one.
func Quantile(spans []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(spans))
	rank := int(math.Ceil(part * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
