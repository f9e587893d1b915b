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

// Leading is what an audit log says of who led, and of who wrote.
type Leading struct {
	// Leaders are the pods that held the lease, one after the other.
	Leaders []string
	// Strangers are writes of managers that did not hold it.
	Strangers []string
}

// asked are what managers ask whether they lead or not: who may read their metrics,
// and what they tell, behind what they do.
var asked = []string{"tokenreviews", "subjectaccessreviews", "events"}

// ReadLeading reads an audit log for who led when a manager wrote something. The
// leader is who last wrote the lease: others cannot while that lasts, and who gives
// it back has ended its work.
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

// isWrite reports whether a request changed something that one leader is to change.
func isWrite(event *auditv1.Event) bool {
	return event.ObjectRef != nil && event.ResponseStatus != nil && event.ResponseStatus.Code < 300 &&
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
		l.Strangers = append(l.Strangers, fmt.Sprintf("%s: pod %s: %s %s %s, while %q led",
			event.RequestReceivedTimestamp.UTC().Format(time.RFC3339Nano), pod, event.Verb, event.ObjectRef.Resource, event.ObjectRef.Name, leader))
	}
}
