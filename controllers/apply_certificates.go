// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// secretContent is what a step writes into a Secret of type kubernetes.io/tls.
type secretContent struct {
	name string
	// resourceVersion is what the step was decided on; empty where there was no Secret.
	resourceVersion string
	// data to write; what is nil is removed.
	data        map[string][]byte
	annotations map[string]string
}

// issueAuthority makes a certificate authority: of two managers that do so at the
// same time, one finds that the other was faster.
func (r *ConversionPolicyReconciler) issueAuthority(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.IssueAuthority,
) error {
	authority, err := pki.NewAuthority("conversion-operator "+policy.Name, r.Now(), step.Lifetime)
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Issuing a certificate authority", "secret", step.SecretName, "next", step.Next)
	data := map[string][]byte{corev1.TLSCertKey: authority.Certificate, corev1.TLSPrivateKeyKey: authority.Key}
	if step.Next {
		data = map[string][]byte{plan.NextCertificateKey: authority.Certificate, plan.NextKeyKey: authority.Key}
	}
	return r.writeSecret(ctx, policy, secretContent{step.SecretName, step.ResourceVersion, data,
		map[string]string{plan.TriggerAnnotation: step.Trigger}})
}

func (r *ConversionPolicyReconciler) promoteAuthority(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.PromoteAuthority,
) error {
	ctrl.LoggerFrom(ctx).Info("The next certificate authority has taken over", "secret", step.SecretName)
	return r.writeSecret(ctx, policy, secretContent{name: step.SecretName, resourceVersion: step.ResourceVersion, data: map[string][]byte{
		corev1.TLSCertKey: step.Authority.Certificate, corev1.TLSPrivateKeyKey: step.Authority.Key,
		plan.NextCertificateKey: nil, plan.NextKeyKey: nil,
	}})
}

// writeCertificate writes what converter pods serve, which they load without a
// restart, and what is to be trusted meanwhile.
func (r *ConversionPolicyReconciler) writeCertificate(
	ctx context.Context, policy *v1alpha1.ConversionPolicy, step plan.WriteCertificate,
) error {
	pair := step.Pair
	if step.Signer != nil {
		var err error
		if pair, err = pki.IssueLeaf(*step.Signer, step.DNSName, r.Now(), step.Lifetime); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Issuing a serving certificate", "secret", step.SecretName)
	}
	return r.writeSecret(ctx, policy, secretContent{step.SecretName, step.ResourceVersion, map[string][]byte{
		corev1.TLSCertKey: filled(pair.Certificate), corev1.TLSPrivateKeyKey: filled(pair.Key), plan.CAKey: filled(step.CABundle),
	}, map[string]string{plan.TrustedAnnotation: step.Trusted}})
}

// filled keeps what is empty from being taken for what is to be removed.
func filled(value []byte) []byte { return append([]byte{}, value...) }

// writeSecret creates a Secret, or changes what a step names in it, unless it
// changed since the decision.
func (r *ConversionPolicyReconciler) writeSecret(ctx context.Context, policy *v1alpha1.ConversionPolicy, content secretContent) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Settings.Namespace, Name: content.name,
			Labels:      plan.Labels(policy.Name, plan.ConverterComponent),
			Annotations: map[string]string{plan.PolicyAnnotation: policy.Name},
		},
		Type: corev1.SecretTypeTLS, Data: content.data,
	}
	if content.resourceVersion == "" {
		maps.Copy(secret.Annotations, content.annotations)
		return r.createOnce(ctx, secret)
	}
	metadata := map[string]any{"resourceVersion": content.resourceVersion}
	if content.annotations != nil {
		metadata["annotations"] = content.annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "data": content.data})
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, secret, client.RawPatch(mergePatch, patch), fieldOwner)
}
