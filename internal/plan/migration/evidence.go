// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// judgeEvidence drops evidence that no longer holds, whatever the gates say. It
// holds on while the CustomResourceDefinition changes one generation at a time
// and keeps its storage version: to move it there and back takes two.
func (m *Migration) judgeEvidence() {
	if m.CRD == nil {
		m.Status.MigrationEvidence = nil
		return
	}
	storage := crds.StorageVersion(m.CRD)
	if evidence := m.Status.MigrationEvidence; evidence != nil {
		step := m.CRD.Generation - evidence.CRDGeneration
		if evidence.CRDUID != m.CRD.UID || evidence.StorageVersion != storage || step < 0 || step > 1 || !crds.StoredOnlyIn(m.CRD, storage) {
			m.Status.MigrationEvidence = nil
		} else {
			evidence.CRDGeneration = m.CRD.Generation
		}
	}
	if m.Status.MigrationEvidence == nil && m.neverChanged() {
		m.establish(v1alpha1.EvidenceSingleVersion, storage)
	}
}

// neverChanged reports that the CustomResourceDefinition is as it was created,
// with one version: no other can ever have been stored.
func (m *Migration) neverChanged() bool {
	return m.CRD.Generation == 1 && len(m.CRD.Spec.Versions) == 1 && crds.StoredOnlyIn(m.CRD, m.CRD.Spec.Versions[0].Name)
}

// establish records evidence for the CustomResourceDefinition as it is now.
func (m *Migration) establish(source v1alpha1.EvidenceSource, storage string) *v1alpha1.MigrationEvidence {
	m.Status.MigrationEvidence = &v1alpha1.MigrationEvidence{
		CRDUID: m.CRD.UID, CRDGeneration: m.CRD.Generation, StorageVersion: storage,
		Source: source, Time: metav1.NewTime(m.Now),
	}
	return m.Status.MigrationEvidence
}
