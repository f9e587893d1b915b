// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// An orphan is what is left of a policy that is gone: it was abandoned, or its
// finalizer was removed by force. Its objects carry the name of the policy, so
// that a policy of that name takes them over. Until one comes:
//
//   - a CustomResourceDefinition that converts through the orphan keeps it, with a
//     certificate that is renewed where the operator has issued it, since its objects
//     would be unreadable otherwise
//   - what no CustomResourceDefinition asks for any more is deleted
//   - migrations are stopped: nobody would judge what they prove

// MakeOrphan decides what to do about an orphan. The observed policy has nothing
// but a name. Released is when the CustomResourceDefinition was first seen not to
// convert through the orphan. It reports whether the orphan is needed.
func MakeOrphan(observed Observed, released time.Time) (Plan, bool) {
	s := newState(observed)
	s.endRuns()
	switch {
	case s.armed && s.Authority != nil:
		s.rotate()
	case s.armed: // somebody else issues its certificates
	case s.CRD != nil && s.Now.Before(released.Add(s.Settings.Settle)):
		s.recheck(released.Add(s.Settings.Settle).Sub(s.Now))
	default:
		s.do(DeleteChildren{s.Policy.Name})
	}
	return s.plan, s.armed
}
