// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Only API servers know whether clients still use a version. A gauge shows that a client
// requested a deprecated version since the server started, and a counter shows how often, but
// not when. So the operator reads the counter every hour, and compares it with the last value.
//
// The result is limited: counters start at zero with each restart of an API server. If one of them may
// not have been asked, nothing follows from the counters of the others.

const (
	// requestsInterval is the time between two reads of the metrics.
	requestsInterval = time.Hour
	// maxServers is the number of API servers with recorded counters: those that started last.
	maxServers = 8
)

// askForRequests has the metrics read while a version to retire is still served.
func (r *Retirement) askForRequests() {
	served := slices.ContainsFunc(r.Status.Retirement, func(record v1alpha1.RetirementStatus) bool {
		return crds.Serves(r.CRD, record.Version)
	})
	if !served || r.Policy.Spec.Paused {
		return
	}
	if check := r.Requested; check == nil || !check.Running && !r.Now.Before(check.Ended.Add(requestsInterval)) {
		r.readRequests()
	} else if !check.Running {
		r.work.Recheck(check.Ended.Add(requestsInterval).Sub(r.Now))
	}
}

func (r *Retirement) readRequests() {
	if slices.ContainsFunc(r.work.Steps, func(s step.Step) bool { _, is := s.(step.ReadRequests); return is }) {
		return // the plan has the step for another version
	}
	r.work.Do(step.ReadRequests{Subject: string(r.CRD.UID), Group: r.CRD.Spec.Group, Resource: r.CRD.Spec.Names.Plural, Since: r.countsSince()})
}

// countsSince is the time before which a result is too old: for the first count of a version,
// now; and for the last one before it is unserved, the end of its deprecation.
func (r *Retirement) countsSince() time.Time {
	var since time.Time
	for _, record := range r.Status.Retirement {
		end := r.Now
		if len(record.Requests) > 0 {
			if record.DeprecatedTime == nil {
				continue
			}
			end = record.DeprecatedTime.Add(After(r.retirement(record.Version)))
		}
		if end.After(since) && !end.After(r.Now) {
			since = end
		}
	}
	return since
}

// looked reports that this manager read the metrics, or failed to, after a time and within the
// last interval.
func (r *Retirement) looked(after time.Time) bool {
	check := r.Requested
	return check != nil && !check.Running && !check.Ended.Before(after) && r.Now.Before(check.Ended.Add(requestsInterval))
}

// countRequests compares a new count with the recorded one. The requests to a server without a
// recorded count may be from any time since its start; they count as recent.
func (r *Retirement) countRequests(record *v1alpha1.RetirementStatus) {
	check := r.Requested
	if !check.ProvenOf(string(r.CRD.UID)) || check.Requests == nil {
		return
	}
	for _, server := range check.Requests.Servers {
		r.countServer(record, started(server), server.Counts[record.Version])
	}
	for _, server := range slices.Sorted(maps.Keys(record.Requests))[:max(0, len(record.Requests)-maxServers)] {
		delete(record.Requests, server)
	}
}

func (r *Retirement) countServer(record *v1alpha1.RetirementStatus, server string, count int64) {
	seen, known := record.Requests[server]
	if known && seen == count {
		return
	}
	if count > 0 {
		record.LastRequested = &metav1.Time{Time: r.Requested.Ended.Truncate(time.Hour)}
	}
	if record.Requests == nil {
		record.Requests = map[string]int64{}
	}
	record.Requests[server] = count
}

// started is when an API server started. The texts have the order of the times.
func started(server observed.ServerRequests) string {
	return time.Unix(server.Started, 0).UTC().Format(time.RFC3339)
}

// requested says whether clients request a version, as far as that is known.
func (r *Retirement) requested(version string) v1alpha1.Requested {
	record := r.record(version)
	switch {
	case record == nil || len(record.Requests) == 0:
		return v1alpha1.RequestedUnknown
	case record.LastRequested != nil:
		return v1alpha1.RequestedYes
	case r.unknown() != "":
		return v1alpha1.RequestedUnknown
	}
	return v1alpha1.RequestedNo
}

// unknown is why requests to some API servers are unknown; empty if they are known, or were not read
// yet.
func (r *Retirement) unknown() string {
	switch check := r.Requested; {
	case check == nil || check.Running:
		return ""
	case check.Reason != "":
		return check.Message
	case check.Requests != nil:
		return check.Requests.Missed
	}
	return ""
}

// lately reports that a client requested a version within the time that must pass without
// requests.
func (r *Retirement) lately(version string) bool {
	record, after := r.record(version), After(r.retirement(version))
	// The time is recorded to the hour.
	return record != nil && record.LastRequested != nil && after > 0 && r.Left(record.LastRequested, after+time.Hour) > 0
}
