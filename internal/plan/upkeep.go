// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/crds"
)

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
}

// trustworthy reports that what is known to be in caBundle fits what pods serve,
// and that it is ours to write.
func (s *state) trustworthy() bool {
	return s.usable() && (s.source.injected() || crds.Injector(s.CRD) == "")
}

func (s *state) serverName() string { return ServerName(s.Policy.Name, s.Settings.Namespace) }

// rearm undoes a write that dropped spec.conversion, as kubectl replace does, or
// that names a plan which no pod has. It asks for one ready pod and no more: a
// conversion that fails is noticed, while strategy None serves and stores wrong
// data and says nothing.
func (s *state) rearm() {
	lost := crds.Strategy(s.CRD) == apiextensionsv1.NoneConverter || s.armed && !s.answers(namedPlan(s.CRD))
	if !lost || !s.CRD.DeletionTimestamp.IsZero() || !s.trustworthy() {
		return
	}
	if !s.Policy.DeletionTimestamp.IsZero() && s.versionsInUse() == "" {
		return // it is being restored
	}
	if hash := s.answerable(); hash != "" {
		s.switchCRD(hash)
	}
}
