// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// ObserveOnce observes for a policy what a reconciliation does, with the rights of a user: without Secrets,
// and without the results of probes and of background checks.
func ObserveOnce(ctx context.Context, api client.Client, settings observed.Settings, policy *v1alpha1.ConversionPolicy) (observed.Cluster, error) {
	reader := withoutSecrets{api}
	r := &ConversionPolicyReconciler{Client: reader, Live: reader, Settings: settings, Now: time.Now}
	state, err := r.gather(ctx, policy)
	if err == nil && state.CompositeProblem.Reason == v1alpha1.ReasonRightsNotGranted {
		err = fmt.Errorf("you may not get %s", crds.WriterOf(state.CRD).Source) // the manager may
	}
	return state, err
}

// withoutSecrets is a client for which no Secret exists.
type withoutSecrets struct{ client.Client }

func (c withoutSecrets) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*corev1.Secret); is {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}
