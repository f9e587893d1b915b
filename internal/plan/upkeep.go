// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// upkeep keeps alive what a CustomResourceDefinition depends on. No gate may
// keep it from that: a policy that is suspended, or whose rules were broken by
// an edit, still has a converter that must not expire, vanish or be bypassed.
func (s *state) upkeep() {
	if (s.engaged || s.Certificate != nil) && !s.going() {
		s.rotate()
	}
	if !s.engaged || s.Policy.Spec.Suspend {
		return
	}
	if s.Rules.Plan == nil && len(s.carried) > 0 && s.Certificate != nil {
		s.applyWorkload()
	}
	s.rearm()
	s.answerDrift()
}

func (s *state) serverName() string { return ServerName(s.Policy.Name, s.Settings.Namespace) }

// rearm names another plan where no pod has the one that is named any more, as
// when plans were deleted. What others wrote is drift's business (drift.go).
func (s *state) rearm() {
	if s.drifted || !s.armed || s.answers(namedPlan(s.CRD)) || !s.CRD.DeletionTimestamp.IsZero() || !s.usable() {
		return
	}
	if !s.Policy.DeletionTimestamp.IsZero() && s.inUse().reason == "" {
		return // it is being restored
	}
	if hash := s.answerable(); hash != "" {
		s.switchCRD(hash)
	}
}
