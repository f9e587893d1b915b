// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// owner is the policy or the fleet that Secrets belong to.
type owner struct {
	name                string
	labels, annotations map[string]string
}

func policyOwner(policy *v1alpha1.ConversionPolicy) owner {
	return owner{policy.Name, names.Labels(policy.Name, names.ConverterComponent), map[string]string{names.PolicyAnnotation: policy.Name}}
}

func fleetOwner(fleet *v1alpha1.ConverterFleet) owner {
	return owner{fleet.Name, names.FleetLabels(fleet.Name), map[string]string{names.FleetAnnotation: fleet.Name}}
}

// secretContent is what a step writes to a Secret of type kubernetes.io/tls.
type secretContent struct {
	name string
	// resourceVersion is the one that the step was decided on; empty if there was no Secret.
	resourceVersion string
	// data to write; a nil value removes its key.
	data        map[string][]byte
	annotations map[string]string
}

// issueAuthority creates a certificate authority. If two managers do so at the same time, one of
// them gets a conflict.
func (r *ConversionPolicyReconciler) issueAuthority(
	ctx context.Context, of owner, s step.IssueAuthority,
) error {
	authority, err := pki.NewAuthority("conversion-operator "+of.name, r.Now(), s.Lifetime)
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Issuing a certificate authority", "secret", s.SecretName, "next", s.Next)
	data := map[string][]byte{corev1.TLSCertKey: authority.Certificate, corev1.TLSPrivateKeyKey: authority.Key}
	if s.Next {
		data = map[string][]byte{certificates.NextCertificateKey: authority.Certificate, certificates.NextKeyKey: authority.Key}
	}
	return r.writeSecret(ctx, of, secretContent{s.SecretName, s.ResourceVersion, data,
		map[string]string{certificates.TriggerAnnotation: s.Trigger}})
}

func (r *ConversionPolicyReconciler) promoteAuthority(
	ctx context.Context, of owner, s step.PromoteAuthority,
) error {
	ctrl.LoggerFrom(ctx).Info("The next certificate authority has taken over", "secret", s.SecretName)
	return r.writeSecret(ctx, of, secretContent{name: s.SecretName, resourceVersion: s.ResourceVersion, data: map[string][]byte{
		corev1.TLSCertKey: s.Authority.Certificate, corev1.TLSPrivateKeyKey: s.Authority.Key,
		certificates.NextCertificateKey: nil, certificates.NextKeyKey: nil,
	}})
}

// writeCertificate writes the certificate that converter pods serve and reload without a restart,
// and the trusted authorities.
func (r *ConversionPolicyReconciler) writeCertificate(
	ctx context.Context, of owner, s step.WriteCertificate,
) error {
	pair := s.Pair
	if s.Signer != nil {
		var err error
		if pair, err = pki.IssueLeaf(*s.Signer, s.DNSName, r.Now(), s.Lifetime); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Issuing a serving certificate", "secret", s.SecretName)
	}
	return r.writeSecret(ctx, of, secretContent{s.SecretName, s.ResourceVersion, map[string][]byte{
		corev1.TLSCertKey: nonNil(pair.Certificate), corev1.TLSPrivateKeyKey: nonNil(pair.Key), observed.CAKey: nonNil(s.CABundle),
	}, map[string]string{certificates.TrustedAnnotation: s.Trusted}})
}

// nonNil returns value, but an empty one is not nil: writeSecret removes the keys of nil values.
func nonNil(value []byte) []byte { return append([]byte{}, value...) }

// writeSecret creates a Secret, or patches the given keys, unless the Secret changed since the
// decision.
func (r *ConversionPolicyReconciler) writeSecret(ctx context.Context, of owner, content secretContent) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Settings.Namespace, Name: content.name,
			Labels:      of.labels,
			Annotations: maps.Clone(of.annotations),
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
	return r.Client.Patch(ctx, secret, mergePatch(map[string]any{"metadata": metadata, "data": content.data}), fieldOwner)
}
