// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// BackgroundCheck is what was found out in the background.
type BackgroundCheck struct {
	// Subject is what it was asked about.
	Subject string
	// Running tells that there is no answer yet.
	Running bool
	// Reason is empty when it is proven, and otherwise a condition reason.
	Reason string
	// Message names the cause.
	Message string
	// Lost tells that an object did not come back as it was: to ask again is of no
	// use until the rules or the object change.
	Lost bool
	// Objects that came back as they were, or that were counted, and the names of
	// the first ten of the latter.
	Objects int
	Names   []string
	// Held is what objects hold in annotations, where that was counted, and Discarded
	// the number of objects from which some of it was removed.
	Held      *Held
	Discarded int64
	// Oversized are objects that have no whole form at a version, and Whole those of
	// TakeSamples.Oversized that have one now, or are gone.
	Oversized, Whole []v1alpha1.OversizedObject
	// Requests are what an API server has counted, where that was asked.
	Requests *Requests
	// Attempts is how often it was asked about the same, and Ended when the last
	// answer came.
	Attempts int
	Ended    time.Time
}

// Requests are what one API server has counted.
type Requests struct {
	// Server is when it started, in seconds since 1970.
	Server string
	// Counts are the requests for each version since then.
	Counts map[string]int64
}

// Held is what was counted.
type Held struct {
	conversion.Holdings
	// CRD is the uid of the CustomResourceDefinition of the objects; empty where it is
	// known to be that of the policy.
	CRD types.UID
	// Ruleset is the hash of the rules by which it was counted.
	Ruleset string
	// Since is when the count began. What clients wrote from then on may not be in it.
	Since time.Time
	// All tells that all objects were looked at.
	All bool
}

// ProvenOf reports whether the subject was proven.
func (i *BackgroundCheck) ProvenOf(subject string) bool {
	return i != nil && i.Subject == subject && !i.Running && i.Reason == ""
}

// InProgress tells that there is no answer yet.
func (i *BackgroundCheck) InProgress() bool { return i != nil && i.Running }

// Samples are taken, and an API server is asked, again: where something has to
// change first, after lookAgain; where something may only be slow, soon, and then
// after twice the time each time, but lookAgain at most.
const (
	askAgain  = 5 * time.Second
	lookAgain = 5 * time.Minute
)

// Due is how long not to ask again yet.
func (i *BackgroundCheck) Due(now time.Time) time.Duration {
	wait := lookAgain
	if !i.Lost {
		wait = min(askAgain<<min(i.Attempts-1, 10), lookAgain)
	}
	return i.Ended.Add(wait).Sub(now)
}
