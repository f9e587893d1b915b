// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// The managedFields of objects name the version at which they were written. Where
// there is no such version any more, an API server refuses every server-side apply
// of the object: it cannot convert it to tell what belongs to whom.

// ClearManagedFields removes a version's name from the managedFields of all
// objects of a kind, and counts what they hold in annotations.
type ClearManagedFields struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Version string
	// Rules read what objects hold; nil where there are none.
	Rules *conversion.Plan
	// Discard are the fields of the version of which nothing is to be left in the
	// annotations.
	Discard []string
	// User may list and patch the objects.
	User string
}

func (ClearManagedFields) step() {}

// clear lets the objects forget a version, and says nothing once none names it. It
// is kept in memory that none does: who removes the version has looked.
func (s *state) clear(record *v1alpha1.RetirementStatus) outcome {
	discard := s.toDiscard(record)
	subject := hash(string(s.CRD.UID), record.Version, record.UnservedTime.UTC().Format(time.RFC3339), s.rulesetOf(), strings.Join(discard, "\n"))
	asked := s.Cleared
	switch {
	case asked.provenOf(subject):
		if record.ClearedTime == nil {
			record.ClearedTime = s.second()
		}
		record.Discarded = max(record.Discarded, asked.Discarded)
		return outcome{}
	case s.mayNotClear() != "":
		return pending(v1alpha1.ReasonRightsNotGranted, s.mayNotClear())
	case asked == nil || asked.Subject != subject || !asked.Asking && s.due(asked):
		for _, right := range s.clearRights() {
			s.do(Apply{right})
		}
		s.do(ClearManagedFields{Subject: subject, CRD: s.CRD, Version: record.Version, Rules: s.Rules.Plan, Discard: discard,
			User: ClearerName(s.Policy.Name, s.Settings.Namespace)})
	case !asked.Asking:
		what := ""
		if len(discard) > 0 {
			what = ", or hold what spec.retirement accepts to lose of it"
		}
		return pending(v1alpha1.ReasonClearingFailed, fmt.Sprintf("objects still name %s in metadata.managedFields%s: %s", record.Version, what, cut(asked.Message)))
	}
	s.clearing = true
	what := ""
	if len(discard) > 0 {
		what = ", and what spec.retirement accepts to lose of it from their annotations"
	}
	return pending(v1alpha1.ReasonClearing, fmt.Sprintf("removing %s from metadata.managedFields of the objects%s", record.Version, what))
}

// toDiscard are the fields that may be lost with a version, once it is certain that
// nothing else keeps it: a count after it was unserved shows no other fields of it.
func (s *state) toDiscard(record *v1alpha1.RetirementStatus) []string {
	entry, known := s.retirement(record.Version), s.plan.Status.PreservedData
	if entry == nil || !reaches(entry.Action, v1alpha1.RetirementRemove) || len(s.strands(record.Version)) > 0 || known == nil {
		return nil
	}
	return entry.AcceptedLosses
}

// ClearRightsName names the ClusterRole and its binding by which the objects of a
// policy's kind may be patched, and the ServiceAccount that has them. As with
// ReadRightsName, there is no such ServiceAccount.
func ClearRightsName(policy string) string { return ChildName(policy) + "-clear" }

// ClearerName is the user that may patch the objects of a policy's kind.
func ClearerName(policy, namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + ClearRightsName(policy)
}

// clearRights grant list and patch on the one resource, and nothing else.
func (s *state) clearRights() []runtime.ApplyConfiguration {
	_, _, clearing := Grants(s.Observed)
	return s.rights(clearing)
}
