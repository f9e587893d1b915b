// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retirement

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Only API servers know which clients still use a version, and they tell little: a
// gauge says that a client asked for a deprecated version since the server started,
// and a counter how often, but not when. So the counter is looked at every hour,
// and compared with what was seen before.
//
// It is one API server that answers, of several perhaps, and one that was started
// again counts from nothing. What was asked of the others is not known.

const (
	// lookAtRequests is how often metrics are read.
	lookAtRequests = time.Hour
	// maxServers is how many API servers are remembered: those that started last.
	maxServers = 8
)

// askForRequests lets metrics be read where a version is to go and can be asked for.
func (r *Retirement) askForRequests() {
	served := slices.ContainsFunc(r.Status.Retirement, func(record v1alpha1.RetirementStatus) bool {
		return crds.Serves(r.CRD, record.Version)
	})
	if !served || r.Policy.Spec.Suspend {
		return
	}
	if asked := r.Requested; asked == nil || !asked.Running && !r.Now.Before(asked.Ended.Add(lookAtRequests)) {
		r.readRequests()
	} else if !asked.Running {
		r.work.Recheck(asked.Ended.Add(lookAtRequests).Sub(r.Now))
	}
}

func (r *Retirement) readRequests() {
	if slices.ContainsFunc(r.work.Steps, func(s step.Step) bool { _, is := s.(step.ReadRequests); return is }) {
		return // for another version already
	}
	r.work.Do(step.ReadRequests{Subject: string(r.CRD.UID), Group: r.CRD.Spec.Group, Resource: r.CRD.Spec.Names.Plural, Since: r.countsSince()})
}

// countsSince is how old counts may be: the first of a version say how often it was
// asked for until now, and the last before it goes that no one did until its time
// had come.
func (r *Retirement) countsSince() time.Time {
	var since time.Time
	for _, record := range r.Status.Retirement {
		end := r.Now
		if len(record.Requests) > 0 {
			if record.DeprecatedTime == nil {
				continue
			}
			end = record.DeprecatedTime.Add(afterOf(r.retirement(record.Version)))
		}
		if end.After(since) && !end.After(r.Now) {
			since = end
		}
	}
	return since
}

// looked reports that metrics were read, or could not be, after a moment and
// lately: not by a previous manager.
func (r *Retirement) looked(after time.Time) bool {
	asked := r.Requested
	return asked != nil && !asked.Running && !asked.Ended.Before(after) && r.Now.Before(asked.Ended.Add(lookAtRequests))
}

// countRequests compares what was read with what is remembered. A server that was
// not seen before may have been asked at any time since it started: that is taken
// for now.
func (r *Retirement) countRequests(record *v1alpha1.RetirementStatus) {
	asked := r.Requested
	if !asked.ProvenOf(string(r.CRD.UID)) || asked.Requests == nil {
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
func (r *Retirement) requested(version string) v1alpha1.Requested {
	record := r.record(version)
	switch {
	case record == nil || len(record.Requests) == 0 || r.unreadable() != "":
		return v1alpha1.RequestedUnknown
	case record.LastRequested != nil:
		return v1alpha1.RequestedYes
	}
	return v1alpha1.RequestedNo
}

// unreadable is why metrics cannot be read; empty where they can, or were not yet.
func (r *Retirement) unreadable() string {
	if r.Requested == nil || r.Requested.Running || r.Requested.Reason == "" {
		return ""
	}
	return r.Requested.Message
}

// lately reports whether a client asked for a version a shorter time ago than
// it has to be left alone.
func (r *Retirement) lately(version string) bool {
	record, after := r.record(version), afterOf(r.retirement(version))
	// It is remembered to the hour.
	return record != nil && record.LastRequested != nil && after > 0 && r.Left(record.LastRequested, after+time.Hour) > 0
}
