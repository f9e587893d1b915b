// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// Who still uses a version is known to API servers alone, and they tell little: a
// gauge says that somebody asked for a deprecated version since the server started,
// and a counter how often, but not when. So the counter is looked at every hour,
// and compared with what was seen before.
//
// It is one API server that answers, of several perhaps, and one that was started
// anew counts from nothing. What was asked of the others is not known.

const (
	// lookAtRequests is how often metrics are read.
	lookAtRequests = time.Hour
	// maxServers is how many API servers are remembered: those that started last.
	maxServers = 8
)

// ReadRequests reads from an API server's metrics what was asked for.
type ReadRequests struct {
	Subject         string
	Group, Resource string
	// Since is when counts are of use that were taken then, or later.
	Since time.Time
}

func (ReadRequests) step() {}

// Requests are what one API server has counted.
type Requests struct {
	// Server is when it started, in seconds since 1970.
	Server string
	// Counts are the requests for each version since then.
	Counts map[string]int64
}

// askForRequests lets metrics be read where a version is to go and can be asked for.
func (s *state) askForRequests() {
	served := slices.ContainsFunc(s.plan.Status.Retirement, func(record v1alpha1.RetirementStatus) bool {
		return crds.Serves(s.CRD, record.Version)
	})
	if !served || s.Policy.Spec.Suspend {
		return
	}
	if asked := s.Requested; asked == nil || !asked.Asking && !s.Now.Before(asked.Ended.Add(lookAtRequests)) {
		s.readRequests()
	} else if !asked.Asking {
		s.recheck(asked.Ended.Add(lookAtRequests).Sub(s.Now))
	}
}

func (s *state) readRequests() {
	if s.reading {
		return
	}
	s.reading = true
	s.do(ReadRequests{Subject: string(s.CRD.UID), Group: s.CRD.Spec.Group, Resource: s.CRD.Spec.Names.Plural, Since: s.countsSince()})
}

// countsSince is how old counts may be: the first of a version say how often it was
// asked for until now, and the last before it goes that nobody did until its time
// had come.
func (s *state) countsSince() time.Time {
	var since time.Time
	for _, record := range s.plan.Status.Retirement {
		end := s.Now
		if len(record.Requests) > 0 {
			if record.DeprecatedTime == nil {
				continue
			}
			end = record.DeprecatedTime.Add(afterOf(s.retirement(record.Version)))
		}
		if end.After(since) && !end.After(s.Now) {
			since = end
		}
	}
	return since
}

// looked reports that metrics were read, or could not be, after a moment and
// lately: not by a manager of before.
func (s *state) looked(after time.Time) bool {
	asked := s.Requested
	return asked != nil && !asked.Asking && !asked.Ended.Before(after) && s.Now.Before(asked.Ended.Add(lookAtRequests))
}

// countRequests compares what was read with what is remembered. A server that was
// not seen before may have been asked at any time since it started: that is taken
// for now.
func (s *state) countRequests(record *v1alpha1.RetirementStatus) {
	asked := s.Requested
	if !asked.provenOf(string(s.CRD.UID)) || asked.Requests == nil {
		return
	}
	count := v1alpha1.RequestCount{Server: asked.Requests.Server, Requests: asked.Requests.Counts[record.Version]}
	at := slices.IndexFunc(record.Requests, func(seen v1alpha1.RequestCount) bool { return seen.Server == count.Server })
	if at >= 0 && record.Requests[at].Requests == count.Requests {
		return
	}
	if count.Requests > 0 {
		record.LastRequested = &metav1.Time{Time: asked.Ended.Truncate(time.Hour)}
	}
	if at >= 0 {
		record.Requests[at] = count
		return
	}
	record.Requests = append(record.Requests, count)
	slices.SortFunc(record.Requests, func(a, b v1alpha1.RequestCount) int { return cmp.Compare(started(a), started(b)) })
	record.Requests = record.Requests[max(0, len(record.Requests)-maxServers):]
}

func started(server v1alpha1.RequestCount) float64 {
	at, err := strconv.ParseFloat(server.Server, 64)
	if err != nil {
		return 0
	}
	return at
}

// requested tells what is known of who asks for a version.
func (s *state) requested(version string) v1alpha1.Requested {
	record := s.record(version)
	switch {
	case record == nil || len(record.Requests) == 0 || s.unreadable() != "":
		return v1alpha1.RequestedUnknown
	case record.LastRequested != nil:
		return v1alpha1.RequestedYes
	}
	return v1alpha1.RequestedNo
}

// unreadable is why metrics cannot be read; empty where they can, or were not yet.
func (s *state) unreadable() string {
	if s.Requested == nil || s.Requested.Asking || s.Requested.Reason == "" {
		return ""
	}
	return s.Requested.Message
}

// lately reports whether somebody asked for a version a shorter time ago than
// it has to be left alone.
func (s *state) lately(version string) bool {
	record, after := s.record(version), afterOf(s.retirement(version))
	// It is remembered to the hour.
	return record != nil && record.LastRequested != nil && after > 0 && s.left(record.LastRequested, after+time.Hour) > 0
}
