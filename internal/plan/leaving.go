// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// leave takes the operator out of the CustomResourceDefinition's way when the
// policy is deleted: the CustomResourceDefinition first, then the pods, then
// the policy. While objects would become unreadable without the converter, the
// policy works on as if it were not deleted: certificates are renewed, and a
// migration may be what the deletion waits for.
func (s *state) leave() {
	if !slices.Contains(s.Policy.Finalizers, Finalizer) {
		return
	}
	inUse := s.inUse()
	if inUse.reason == "" {
		apimeta.RemoveStatusCondition(&s.plan.Status.Conditions, v1alpha1.DeletionBlockedCondition)
	}
	switch {
	case inUse.reason != "" && s.Policy.Spec.Suspend:
		s.pause()
		s.report(v1alpha1.DeletionBlockedCondition, inUse)
	case inUse.reason != "":
		s.reach()
		s.report(v1alpha1.DeletionBlockedCondition, inUse)
	case s.CRD != nil && s.armed:
		s.switched = true
		s.do(RestoreCRD{s.pin()})
		s.summarize(unknown(v1alpha1.ReasonDeleting, "setting the CustomResourceDefinition's conversion strategy to None"))
	default:
		s.do(DeleteChildren{s.Policy.Name})
		s.do(Release{})
		s.summarize(unknown(v1alpha1.ReasonDeleting, "removing the converter"))
	}
}

// going reports that the policy is being deleted, and nothing needs it any more.
func (s *state) going() bool {
	return !s.Policy.DeletionTimestamp.IsZero() && s.inUse().reason == ""
}

// inUse says why the CustomResourceDefinition still needs the converter, or
// nothing: also when somebody else dropped spec.conversion, which does not make
// stored objects readable. Another webhook has taken over.
func (s *state) inUse() outcome {
	if s.CRD == nil || !s.engaged || !s.armed && crds.Strategy(s.CRD) == apiextensionsv1.WebhookConverter {
		return outcome{}
	}
	if !s.CRD.DeletionTimestamp.IsZero() {
		return outcome{status: metav1.ConditionTrue, reason: v1alpha1.ReasonCRDTerminating,
			message: "the CustomResourceDefinition is being deleted, which needs its webhook: waits until it is gone"}
	}
	if inUse := s.versionsInUse(); inUse != "" {
		return outcome{status: metav1.ConditionTrue, reason: v1alpha1.ReasonVersionsInUse, message: inUse +
			"; without the converter objects would be unreadable or wrong: serve and store one version only, or delete the CustomResourceDefinition"}
	}
	return outcome{}
}

// versionsInUse names what still needs a conversion, or is empty.
func (s *state) versionsInUse() string {
	if len(s.CRD.Spec.Versions) == 1 {
		return "" // there is nothing to convert into
	}
	storage := crds.StorageVersion(s.CRD)
	for _, served := range crds.ServedVersions(s.CRD) {
		if served != storage {
			return "version " + served + " is served, and objects are written at " + storage
		}
	}
	if !crds.StoredOnlyIn(s.CRD, storage) {
		return "objects may be stored at " + strings.Join(s.CRD.Status.StoredVersions, ", ")
	}
	if s.plan.Status.Evidence == nil {
		return fmt.Sprintf("no migration of this policy has proven that every object is stored at %s (%s)", storage, howToMigrate(s.Policy))
	}
	return ""
}
