// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"slices"
)

// InOrder returns the cluster with its lists sorted. Caches list objects in a random order,
// and neither decisions nor messages may depend on it.
func InOrder(observed Cluster) Cluster {
	observed.Leftovers = slices.Sorted(slices.Values(observed.Leftovers))
	observed.Revisions = sorted(observed.Revisions, func(a, b StoredRevision) int { return cmp.Compare(a.Hash, b.Hash) })
	observed.Pods = sorted(observed.Pods, byName)
	observed.Ending = sorted(observed.Ending, func(a, b EndingPod) int { return a.Until.Compare(b.Until) })
	observed.External.Endpoints = sorted(observed.External.Endpoints, byName)
	observed.Fleets = sorted(observed.Fleets, func(a, b Fleet) int { return cmp.Compare(a.Name, b.Name) })
	observed.Runs = sorted(observed.Runs, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	return observed
}

func byName(a, b Pod) int { return cmp.Compare(a.Name, b.Name) }

// sorted returns a sorted copy.
func sorted[T any](list []T, compare func(a, b T) int) []T {
	return slices.SortedStableFunc(slices.Values(list), compare)
}
