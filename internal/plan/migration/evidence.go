// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// Evidence returns the migration evidence of the status if it still holds, and nil
// otherwise. It holds while the CustomResourceDefinition keeps its storage version and
// changes one generation at a time: moving the storage version away and back takes two.
func Evidence(cluster observed.Cluster) *v1alpha1.MigrationEvidence {
	crd := cluster.CRD
	if crd == nil {
		return nil
	}
	storage := crds.StorageVersion(crd)
	if evidence := cluster.Policy.Status.MigrationEvidence.DeepCopy(); evidence != nil {
		changes := crd.Generation - evidence.CRDGeneration
		if evidence.Source != v1alpha1.EvidenceMigration && olderObjects(cluster) {
			return nil
		}
		if evidence.CRDUID == crd.UID && evidence.StorageVersion == storage && changes >= 0 && changes <= 1 && crds.StoredOnlyIn(crd, storage) {
			evidence.CRDGeneration = crd.Generation
			return evidence
		}
	}
	// The storage version of a definition whose spec never changed is the only one that was ever
	// stored, unless there are objects from before the definition.
	switch {
	case olderObjects(cluster):
		return nil
	case crd.Generation != 1 || !crds.StoredOnlyIn(crd, storage):
		return nil
	case len(crd.Spec.Versions) == 1:
		return newEvidence(cluster, v1alpha1.EvidenceSingleVersion)
	}
	return newEvidence(cluster, v1alpha1.EvidenceUnchanged)
}

// olderObjects reports that objects are older than the CustomResourceDefinition: it was removed without
// them, as when its finalizer was removed by force, and created again.
func olderObjects(cluster observed.Cluster) bool {
	window := cluster.Policy.Status.UnconvertedWindow
	return window != nil && window.OlderObjects > 0 && !cluster.Recreated()
}

// newEvidence is evidence for the current CustomResourceDefinition.
func newEvidence(cluster observed.Cluster, source v1alpha1.EvidenceSource) *v1alpha1.MigrationEvidence {
	return &v1alpha1.MigrationEvidence{
		CRDUID: cluster.CRD.UID, CRDGeneration: cluster.CRD.Generation, StorageVersion: crds.StorageVersion(cluster.CRD),
		Source: source, Time: metav1.NewTime(cluster.Now),
	}
}
