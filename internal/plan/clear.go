// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// The managedFields of objects name the version at which somebody wrote. Where
// there is no such version any more, an API server refuses every server-side apply
// of the object: it cannot convert it to tell what belongs to whom.

// ClearManagedFields removes a version's name from the managedFields of all
// objects of a kind.
type ClearManagedFields struct {
	Subject string
	CRD     *apiextensionsv1.CustomResourceDefinition
	Version string
	// User may list and patch the objects.
	User string
}

func (ClearManagedFields) step() {}

// clear lets the objects forget a version, and says nothing once none names it. It
// is kept in memory that none does: who removes the version has looked.
func (s *state) clear(record *v1alpha1.RetirementStatus) outcome {
	subject := hash(string(s.CRD.UID), record.Version, record.UnservedTime.UTC().Format(time.RFC3339))
	asked := s.Cleared
	switch {
	case asked.provenOf(subject):
		if record.ClearedTime == nil {
			record.ClearedTime = s.second()
		}
		return outcome{}
	case s.mayNotClear() != "":
		return pending(v1alpha1.ReasonRightsNotGranted, s.mayNotClear())
	case asked == nil || asked.Subject != subject || !asked.Asking && s.due(asked):
		for _, right := range s.clearRights() {
			s.do(Apply{right})
		}
		s.do(ClearManagedFields{Subject: subject, CRD: s.CRD, Version: record.Version, User: ClearerName(s.Policy.Name, s.Settings.Namespace)})
	case !asked.Asking:
		return pending(v1alpha1.ReasonClearingFailed, fmt.Sprintf("objects still name %s in metadata.managedFields: %s", record.Version, cut(asked.Message)))
	}
	s.clearing = true
	return pending(v1alpha1.ReasonClearing, fmt.Sprintf("removing %s from metadata.managedFields of the objects", record.Version))
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
