// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// observeCertificates reads the certificates that converter pods mount, and their source.
func (r *ConversionPolicyReconciler) observeCertificates(ctx context.Context, state *observed.Cluster) (err error) {
	if state.Authority, err = r.secret(ctx, r.Client, names.AuthoritySecret(state.Policy.Name)); err != nil {
		return err
	}
	if state.Certificate, err = r.secret(ctx, r.Client, observed.CertificateSecret(state.Policy)); err != nil {
		return err
	}
	if fleet := observed.FleetOf(state.Policy); fleet != "" {
		state.OwnCertificate = state.Certificate
		_, serving, _ := names.FleetSecrets(fleet)
		if state.Certificate, err = r.secret(ctx, r.Client, serving); err != nil {
			return err
		}
	}
	if name := certificates.SourceSecret(state.Policy); name != "" {
		// Live: the cache holds only objects that the operator manages.
		if state.Source, err = r.secret(ctx, r.Live, name); err != nil {
			return err
		}
	}
	if err := r.observeLeftovers(ctx, state); err != nil {
		return err
	}
	if state.Policy.Spec.Certificates.CertManager != nil {
		state.Request, err = r.request(ctx, names.IssuedSecret(state.Policy.Name))
	}
	return err
}

// observeLeftovers reads which Secrets of previous sources and converters still exist.
func (r *ConversionPolicyReconciler) observeLeftovers(ctx context.Context, state *observed.Cluster) error {
	for _, name := range certificates.UnusedSecrets(state.Policy) {
		secret, err := r.secret(ctx, r.Client, name)
		if err != nil {
			return err
		}
		if secret != nil && secret.DeletionTimestamp.IsZero() {
			state.Leftovers = append(state.Leftovers, name)
		}
	}
	return nil
}

// request reads the status of a Certificate of cert-manager. It is not an error if cert-manager is not
// installed.
func (r *ConversionPolicyReconciler) request(ctx context.Context, name string) (observed.Request, error) {
	certificate := &cmv1.Certificate{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: name}, certificate)
	switch {
	case apimeta.IsNoMatchError(err):
		return observed.Request{NotInstalled: true}, nil
	case err != nil:
		return observed.Request{}, client.IgnoreNotFound(err)
	}
	return certificates.RequestOf(certificate), nil
}

// secret returns nil if the Secret does not exist.
func (r *ConversionPolicyReconciler) secret(ctx context.Context, from client.Reader, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := from.Get(ctx, client.ObjectKey{Namespace: r.Settings.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return secret, nil
}
