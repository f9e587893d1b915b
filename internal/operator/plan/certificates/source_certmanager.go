// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"cmp"
	"fmt"
	"net"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	cmv1apply "github.com/cert-manager/cert-manager/pkg/client/applyconfigurations/certmanager/v1"
	cmmetaapply "github.com/cert-manager/cert-manager/pkg/client/applyconfigurations/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// certManager requests a certificate from cert-manager, and reads it from the Secret of
// cert-manager. Pods mount a copy of it, as of the Secret of every other client.
type certManager struct {
	*Certificates
	spec v1alpha1.CertManagerCertificates
}

func (c certManager) maintain() {
	c.recheckSource()
	if !c.Request.NotInstalled && !c.Paused {
		c.work.Do(step.Apply{Object: c.request()})
	}
}

func (c certManager) offer() offer {
	if c.Request.NotInstalled {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonNotFound,
			"the API server does not know Certificates of cert-manager.io/v1: install cert-manager, or choose another source in spec.certificates"))}
	}
	if c.Source == nil || len(c.Source.Data) == 0 {
		message := fmt.Sprintf("waiting for cert-manager to issue Certificate %s/%s from %s %s",
			c.Settings.Namespace, c.Secrets.Issued, cmp.Or(c.spec.IssuerRef.Kind, cmv1.IssuerKind), c.spec.IssuerRef.Name)
		if c.Request.Message != "" {
			message += ": " + c.Request.Message
		}
		return offer{wrong: new(gate.Waiting(v1alpha1.ReasonIssuing, message))}
	}
	return c.inspect(c.Source, fmt.Sprintf(
		"the issuer %s does not provide its CA certificate: choose one that does, such as a CA or Vault issuer", c.spec.IssuerRef.Name))
}

// request is the Certificate of cert-manager.
func (c certManager) request() *cmv1apply.CertificateApplyConfiguration {
	issuer := cmmetaapply.IssuerReference().WithName(c.spec.IssuerRef.Name)
	if c.spec.IssuerRef.Kind != "" {
		issuer.WithKind(c.spec.IssuerRef.Kind)
	}
	if c.spec.IssuerRef.Group != "" {
		issuer.WithGroup(c.spec.IssuerRef.Group)
	}
	return Request(cmv1apply.Certificate(c.Secrets.Issued, c.Settings.Namespace).WithLabels(c.Labels).WithAnnotations(c.Annotations), issuer, c.ServerName)
}

// Request makes a Certificate ask an issuer for the serving certificate of a converter. The Secret has the name, the labels and
// the annotations of the Certificate.
func Request(certificate *cmv1apply.CertificateApplyConfiguration, issuer *cmmetaapply.IssuerReferenceApplyConfiguration, serverName string) *cmv1apply.CertificateApplyConfiguration {
	spec := cmv1apply.CertificateSpec().
		WithSecretName(*certificate.Name).
		WithUsages(cmv1.UsageDigitalSignature, cmv1.UsageServerAuth).
		WithPrivateKey(cmv1apply.CertificatePrivateKey().
			WithAlgorithm(cmv1.ECDSAKeyAlgorithm).WithSize(256).WithRotationPolicy(cmv1.RotationPolicyAlways)).
		WithIssuerRef(issuer).
		// The cache watches Secrets with these labels.
		WithSecretTemplate(cmv1apply.CertificateSecretTemplate().
			WithLabels(certificate.Labels).WithAnnotations(certificate.Annotations))
	if net.ParseIP(serverName) != nil {
		spec.WithIPAddresses(serverName)
	} else {
		spec.WithDNSNames(serverName)
	}
	return certificate.WithSpec(spec)
}

// RequestOf reads the state of a Certificate of cert-manager.
func RequestOf(certificate *cmv1.Certificate) observed.Request {
	for _, condition := range certificate.Status.Conditions {
		if condition.Type == cmv1.CertificateConditionReady && condition.Status != cmmeta.ConditionTrue {
			return observed.Request{Message: condition.Message}
		}
	}
	return observed.Request{}
}
