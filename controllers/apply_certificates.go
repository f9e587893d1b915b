// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// issueAuthority creates, and never changes, a certificate authority: two
// managers that issue one at the same time end up with the same.
func (r *ConversionPolicyReconciler) issueAuthority(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.IssueAuthority,
) error {
	authority, err := pki.NewAuthority("conversion-operator "+policy.Name, r.Now())
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Issuing a certificate authority", "secret", step.SecretName)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Settings.Namespace, Name: step.SecretName,
			Labels:      plan.Labels(policy.Name, plan.ConverterComponent),
			Annotations: map[string]string{plan.PolicyAnnotation: policy.Name},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: authority.Certificate, corev1.TLSPrivateKeyKey: authority.Key},
	}
	return r.createOnce(ctx, secret)
}

// issueCertificate writes a new leaf; converter pods load it without a restart.
func (r *ConversionPolicyReconciler) issueCertificate(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.IssueCertificate,
) error {
	leaf, err := pki.IssueLeaf(plan.KeyPair(step.Authority), step.DNSName, r.Now())
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Issuing a serving certificate", "secret", step.SecretName)
	secret := corev1apply.Secret(step.SecretName, r.Settings.Namespace).
		WithLabels(plan.Labels(policy.Name, plan.ConverterComponent)).
		WithAnnotations(map[string]string{plan.PolicyAnnotation: policy.Name}).
		WithType(corev1.SecretTypeTLS).
		WithData(map[string][]byte{corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key})
	return r.Client.Apply(ctx, secret, fieldOwner, client.ForceOwnership)
}
