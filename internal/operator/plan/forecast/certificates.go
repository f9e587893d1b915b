// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// certify carries out a step on certificates as the controller does.
func (c *Cluster) certify(s step.Step) {
	switch s := s.(type) {
	case step.IssueAuthority:
		pair := c.pair(pki.NewAuthority(c.State.Policy.Name, c.State.Now, s.Lifetime))
		data := map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
		if s.Next {
			data = map[string][]byte{certificates.NextCertificateKey: pair.Certificate, certificates.NextKeyKey: pair.Key}
		}
		c.State.Authority = c.patched(c.State.Authority, s.SecretName, s.ResourceVersion, data,
			map[string]string{certificates.TriggerAnnotation: s.Trigger})
	case step.PromoteAuthority:
		c.State.Authority = c.patched(c.State.Authority, s.SecretName, s.ResourceVersion, map[string][]byte{
			corev1.TLSCertKey: s.Authority.Certificate, corev1.TLSPrivateKeyKey: s.Authority.Key,
			certificates.NextCertificateKey: nil, certificates.NextKeyKey: nil}, nil)
	case step.WriteCertificate:
		pair := s.Pair
		if s.Signer != nil {
			pair = c.pair(pki.IssueLeaf(*s.Signer, s.DNSName, c.State.Now, s.Lifetime))
		}
		of := &c.State.Certificate
		if observed.FleetOf(c.State.Policy) != "" {
			of = &c.State.OwnCertificate
		}
		*of = c.patched(*of, s.SecretName, s.ResourceVersion, map[string][]byte{
			corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key, observed.CAKey: s.CABundle,
		}, map[string]string{certificates.TrustedAnnotation: s.Trusted})
	case step.RefreshPod:
		c.refresh(s)
	}
}

func (c *Cluster) pair(pair pki.KeyPair, err error) pki.KeyPair {
	c.note(err)
	return pair
}

func (c *Cluster) patched(secret *corev1.Secret, name, version string, data map[string][]byte, annotations map[string]string) *corev1.Secret {
	patched, err := Patched(secret, name, version, data, annotations)
	c.note(err)
	return patched
}

// Patched is a Secret with what a step writes; a nil value is removed. Like the API server, it returns an error for a step that
// was decided on another state.
func Patched(secret *corev1.Secret, name, version string, data map[string][]byte, annotations map[string]string) (patched *corev1.Secret, err error) {
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	} else if secret.ResourceVersion != version {
		err = fmt.Errorf("Secret %s is written at resourceVersion %q and has %q", name, version, secret.ResourceVersion) //nolint:staticcheck // it begins with a kind
	}
	secret = secret.DeepCopy()
	next, _ := strconv.Atoi(secret.ResourceVersion)
	secret.ResourceVersion = strconv.Itoa(next + 1)
	if secret.Data == nil {
		secret.Data, secret.Annotations = map[string][]byte{}, map[string]string{}
	}
	for key, value := range data {
		secret.Data[key] = value
		if value == nil {
			delete(secret.Data, key)
		}
	}
	maps.Copy(secret.Annotations, annotations)
	return secret, err
}

// findLeftovers observes what is there and not used any more.
func (c *Cluster) findLeftovers() {
	c.State.Leftovers = nil
	for _, name := range certificates.UnusedSecrets(c.State.Policy) {
		if name == names.AuthoritySecret(c.State.Policy.Name) && c.State.Authority != nil ||
			name == names.CertificateSecret(c.State.Policy.Name) && c.State.OwnCertificate != nil || slices.Contains(c.Left, name) {
			c.State.Leftovers = append(c.State.Leftovers, name)
		}
	}
}

func (c *Cluster) deleteSecret(name string) {
	if name == names.AuthoritySecret(c.State.Policy.Name) {
		c.State.Authority = nil
	}
	if name == names.CertificateSecret(c.State.Policy.Name) {
		c.State.OwnCertificate = nil
	}
	c.Left = slices.DeleteFunc(c.Left, func(left string) bool { return left == name })
}
