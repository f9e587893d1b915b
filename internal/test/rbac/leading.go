// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"io"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Leading has the leaders and the writes of managers in an audit log.
type Leading struct {
	// Leaders are the pods that held the lease, in order.
	Leaders []string
	// WithoutLease are writes of managers that did not hold the lease.
	WithoutLease []string
}

// asked are resources that managers create whether they lead or not: checks of clients that read
// metrics, of their own name, and events, which are sent with a delay.
var asked = []string{"tokenreviews", "subjectaccessreviews", "selfsubjectreviews", "events"}

// ReadLeading reads from an audit log who led when a manager wrote something. The leader is the
// last writer of the lease: others cannot write it while it is valid, and a manager releases it
// only after its work has ended.
func ReadLeading(from io.Reader, namespace string) (*Leading, error) {
	var written []*auditv1.Event
	err := readEvents(from, func(event *auditv1.Event) {
		by, ours := accountOf(event.User.Username, namespace)
		if ours && by == Manager && isWrite(event) {
			written = append(written, event)
		}
	})
	slices.SortStableFunc(written, func(a, b *auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	leading := &Leading{}
	for _, event := range written {
		leading.add(event)
	}
	return leading, err
}

// isWrite reports whether a request changed something that only the leader may change.
func isWrite(event *auditv1.Event) bool {
	return event.ObjectRef != nil && event.ResponseStatus != nil && event.ResponseStatus.Code < 300 && !isDryRun(event) &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb) &&
		!slices.Contains(asked, event.ObjectRef.Resource)
}

func (l *Leading) add(event *auditv1.Event) {
	pod, leader := podOf(event), ""
	if len(l.Leaders) > 0 {
		leader = l.Leaders[len(l.Leaders)-1]
	}
	switch {
	case pod == leader:
	case event.ObjectRef.Resource == "leases":
		l.Leaders = append(l.Leaders, pod)
	default:
		l.WithoutLease = append(l.WithoutLease, fmt.Sprintf("%s: pod %s: %s %s %s, while %q led",
			event.RequestReceivedTimestamp.UTC().Format(time.RFC3339Nano), pod, event.Verb, event.ObjectRef.Resource, event.ObjectRef.Name, leader))
	}
}
