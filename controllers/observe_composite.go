// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// observeComposite reads live the CompositeResourceDefinition from which Crossplane generates the
// CustomResourceDefinition, at the version that Crossplane names. It is not watched: most clusters
// lack the kind, and Crossplane copies what matters to the CustomResourceDefinition. The rights for
// that are optional (config/components/crossplane).
func (r *ConversionPolicyReconciler) observeComposite(ctx context.Context, state *observed.Cluster) error {
	if state.CRD == nil {
		return nil
	}
	owner := crds.CompositeOf(state.CRD)
	if owner == nil {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(owner.APIVersion)
	object.SetKind(owner.Kind)
	err := r.Live.Get(ctx, client.ObjectKey{Name: owner.Name}, object)
	says := fmt.Sprintf("Crossplane writes the CustomResourceDefinition from CompositeResourceDefinition %s, ", owner.Name)
	switch {
	case apierrors.IsForbidden(err):
		state.CompositeProblem = observed.CompositeProblem{Reason: v1alpha1.ReasonRightsNotGranted,
			Message: says + "and the operator lacks permission to read that: install config/components/crossplane"}
		return nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err), err == nil && object.GetUID() != owner.UID:
		state.CompositeProblem = observed.CompositeProblem{Reason: v1alpha1.ReasonCompositeNotUsable,
			Message: says + "which does not exist: create it again, or remove that owner from metadata.ownerReferences of the CustomResourceDefinition"}
		return nil
	case err != nil:
		return err
	}
	xrd := &crds.Composite{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, xrd); err != nil {
		return fmt.Errorf("read CompositeResourceDefinition %s: %w", owner.Name, err)
	}
	state.Composite = xrd
	return nil
}
