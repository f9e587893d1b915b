// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// BackgroundCheck is the state or the result of a background check.
type BackgroundCheck struct {
	// Subject identifies the state that is checked.
	Subject string
	// Running tells that there is no result yet.
	Running bool
	// Reason is empty if the check passed, and otherwise a condition reason.
	Reason string
	// Message names the cause.
	Message string
	// Lost tells that an object changed in a round trip, or that something cannot be read. Another
	// check cannot pass until something changes.
	Lost bool
	// Objects is the number of objects that survived the round trip, or that were counted.
	// Names has the first ten of the latter.
	Objects int
	Names   []string
	// AtLeast tells that more objects may count.
	AtLeast bool
	// Older is the number of counted objects that are older than the CustomResourceDefinition.
	Older int
	// Held counts the preserved data of the objects; nil if it was not counted. Discarded is
	// the number of objects from which some of it was removed.
	Held      *Held
	Discarded int64
	// Oversized are objects that do not fit at a version. Whole are those of
	// TakeSamples.Oversized that fit now, or no longer exist.
	Oversized, Whole []v1alpha1.OversizedObject
	// Requests are the counts of API servers; nil if they were not read.
	Requests *Requests
	// Dependents are the objects that name a version, by version, as far as they were found.
	Dependents map[string]Dependents
	// Attempts is the number of checks of the same subject, and Ended the end of the last one.
	Attempts int
	Ended    time.Time
}

// Dependents are the objects that name a version.
type Dependents struct {
	// Count is their number, and Names describes the first ones.
	Count int
	Names []string
}

// Requests are the counts of API servers.
type Requests struct {
	Servers []ServerRequests
	// Missed is why API servers may be missing; empty if all of them answered.
	Missed string
}

// ServerRequests are the counts of one API server.
type ServerRequests struct {
	// Started is when the server started, in seconds since 1970.
	Started int64
	// Counts are the requests for each version since then.
	Counts map[string]int64
}

// Held counts the preserved data of objects.
type Held struct {
	conversion.Holdings
	// CRD is the uid of the CustomResourceDefinition of the objects; empty if it is certainly
	// that of the policy.
	CRD types.UID
	// Ruleset is the hash of the rules that read the data.
	Ruleset string
	// Since is the begin of the count. Later writes of clients may be missing in it.
	Since time.Time
	// All tells that the count includes all objects.
	All bool
}

// ProvenOf reports whether a check of this subject has passed.
func (c *BackgroundCheck) ProvenOf(subject string) bool {
	return c != nil && c.Subject == subject && !c.Running && c.Reason == ""
}

// InProgress reports that there is no result yet.
func (c *BackgroundCheck) InProgress() bool { return c != nil && c.Running }

// A failed check is repeated after firstRetry, and then after twice the previous time, up to
// maxRetry. If Lost, something has to change first: maxRetry applies at once.
const (
	firstRetry = 5 * time.Second
	maxRetry   = 5 * time.Minute
)

// Due is the time until the check is repeated; zero or less if it is due.
func (c *BackgroundCheck) Due(now time.Time) time.Duration {
	wait := maxRetry
	if !c.Lost {
		wait = min(firstRetry<<min(c.Attempts-1, 10), maxRetry)
	}
	return c.Ended.Add(wait).Sub(now)
}

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
