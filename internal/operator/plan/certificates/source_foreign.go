// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

const (
	// sourceInterval is the time between two reads of the Secret of another client, which no
	// event reports.
	sourceInterval = 10 * time.Minute
	// wrongSourceInterval is that time while something is wrong with the Secret.
	wrongSourceInterval = 10 * time.Second
)

// foreignSecret is a Secret of another client.
type foreignSecret struct {
	*Certificates
	name string
}

func (f foreignSecret) maintain() { f.recheckSource() }

func (f foreignSecret) offer() offer {
	if f.Source == nil {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonNotFound, fmt.Sprintf(
			"Secret %s/%s does not exist: create it with tls.crt and tls.key, valid for %s, and ca.crt; or correct spec.certificates.secret.name",
			f.Settings.Namespace, f.name, f.ServerName)))}
	}
	return f.inspect(f.Source, "put the CA certificate that issued tls.crt into ca.crt")
}

// inspect checks a Secret of another client. The hint says how to provide a missing authority.
func (c *Certificates) inspect(secret *corev1.Secret, hint string) offer {
	name := "Secret " + c.Settings.Namespace + "/" + secret.Name
	if len(secret.Data[observed.CAKey]) == 0 {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf("%s has no ca.crt: %s", name, hint)))}
	}
	roots, err := pki.ParseBundle(secret.Data[observed.CAKey])
	if err != nil {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf("%s: ca.crt: %s: %s", name, err, hint)))}
	}
	roots = roots.Unexpired(c.Now)
	pair := observed.KeyPair(secret)
	if err := pki.CheckLeaf(pair, roots, c.ServerName, c.Now); err != nil {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf("%s: %s: %s", name, err, c.cure(err))))}
	}
	return offer{roots: roots, pair: pair}
}

// cure says what to do about a problem of the certificate of another client.
func (c *Certificates) cure(err error) string {
	switch pki.ProblemOf(err) {
	case pki.KeyMismatch:
		return "put the private key of tls.crt into tls.key"
	case pki.NotYetValid:
		return "wait, or correct the clock of the issuer"
	case pki.Expired:
		return "renew it"
	case pki.WrongName:
		if net.ParseIP(c.ServerName) != nil {
			return "issue it for the IP address " + c.ServerName
		}
		return "issue it for the DNS name " + c.ServerName
	case pki.CAMismatch:
		return "put the CA certificate that issued tls.crt into ca.crt, and intermediate certificates after the first one in tls.crt"
	}
	return "put a certificate for " + c.ServerName + " into tls.crt and its key into tls.key, both in PEM"
}

// recheckSource has the Secret of another client read again later.
func (c *Certificates) recheckSource() {
	if c.offered.wrong != nil {
		c.work.Recheck(wrongSourceInterval)
		return
	}
	c.work.Recheck(sourceInterval)
}

// injection leaves caBundle to another client. The serving certificate must match it.
type injection struct {
	*Certificates
	name string
}

func (i injection) maintain() { i.recheckSource() }

func (i injection) offer() offer {
	if i.Source == nil {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonNotFound, fmt.Sprintf(
			"Secret %s/%s does not exist: create it, with tls.crt and tls.key valid for %s; or correct spec.certificates.injected.secretName",
			i.Settings.Namespace, i.name, i.ServerName)))}
	}
	// The Secret of OpenShift's service-ca has no authority. Until one is injected, pods are
	// verified by the certificate itself.
	text := i.Source.Data[observed.CAKey]
	if len(text) == 0 {
		text = i.Source.Data[corev1.TLSCertKey]
	}
	roots, err := pki.ParseBundle(text)
	if err == nil {
		err = pki.CheckLeaf(observed.KeyPair(i.Source), roots, i.ServerName, i.Now)
	}
	if err != nil {
		return offer{wrong: new(gate.Stalled(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf("Secret %s/%s: %s: %s", i.Settings.Namespace, i.name, err, i.cure(err))))}
	}
	return offer{roots: roots, pair: observed.KeyPair(i.Source)}
}

// onlyItself reports that caBundle has only the certificate itself. It begins with that if
// the authority is unknown until it is injected.
func (c *Certificates) onlyItself() bool {
	itself, err := pki.ParseBundle(c.serving.pair.Certificate)
	return err == nil && c.trusted.Same(itself) && c.Source != nil && len(c.Source.Data[observed.CAKey]) == 0
}

// injectedWrong is the outcome if the injected caBundle cannot be used, or nil.
func (c *Certificates) injectedWrong() *gate.Outcome {
	if !c.Active {
		return nil
	}
	if len(c.trusted) == 0 || c.onlyItself() {
		return new(gate.Waiting(v1alpha1.ReasonNotInjected, "caBundle of the CustomResourceDefinition is not injected: annotate the CustomResourceDefinition for the injector, "+
			"with cert-manager.io/inject-ca-from: <namespace>/<Certificate> or service.beta.openshift.io/inject-cabundle: \"true\"; if it is annotated, see the injector's log"))
	}
	if err := pki.CheckLeaf(c.serving.pair, c.trusted, c.ServerName, c.Now); err != nil {
		return new(gate.Waiting(v1alpha1.ReasonInvalidCertificate, fmt.Sprintf(
			"the injected caBundle does not verify the serving certificate: %s: make the injector use the authority that issued %s/%s",
			err, c.Settings.Namespace, c.Spec.Injected.SecretName)))
	}
	return nil
}
