// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// judgeEvidence drops evidence that no longer holds, whatever the gates say. It
// holds on while the CustomResourceDefinition changes one generation at a time
// and keeps its storage version: to move it there and back takes two.
func (s *state) judgeEvidence() {
	if s.CRD == nil {
		s.plan.Status.Evidence = nil
		return
	}
	storage := crds.StorageVersion(s.CRD)
	if evidence := s.plan.Status.Evidence; evidence != nil {
		step := s.CRD.Generation - evidence.CRDGeneration
		if evidence.CRDUID != s.CRD.UID || evidence.StorageVersion != storage || step < 0 || step > 1 || !crds.StoredOnlyIn(s.CRD, storage) {
			s.plan.Status.Evidence = nil
		} else {
			evidence.CRDGeneration = s.CRD.Generation
		}
	}
	if s.plan.Status.Evidence == nil && s.neverChanged() {
		s.establish(v1alpha1.EvidenceSingleVersion, storage)
	}
}

// neverChanged reports that the CustomResourceDefinition is as it was created,
// with one version: no other can ever have been stored.
func (s *state) neverChanged() bool {
	return s.CRD.Generation == 1 && len(s.CRD.Spec.Versions) == 1 && crds.StoredOnlyIn(s.CRD, s.CRD.Spec.Versions[0].Name)
}

// establish records evidence for the CustomResourceDefinition as it is now.
func (s *state) establish(source v1alpha1.EvidenceSource, storage string) *v1alpha1.StorageEvidence {
	s.plan.Status.Evidence = &v1alpha1.StorageEvidence{
		CRDUID: s.CRD.UID, CRDGeneration: s.CRD.Generation, StorageVersion: storage,
		Source: source, Time: metav1.NewTime(s.Now),
	}
	return s.plan.Status.Evidence
}
