// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// certify carries out a step on the certificates of the policy.
func (c *Cluster) certify(s step.Step) {
	serving := &c.State.Certificate
	if observed.FleetOf(c.State.Policy) != "" {
		serving = &c.State.OwnCertificate
	}
	c.note(Certify(s, c.State.Policy.Name, c.State.Now, &c.State.Authority, serving))
}

// Certify changes the Secrets of an authority and of a serving certificate as the controller does. Like the API
// server, it returns an error for a step that was decided on another state.
func Certify(s step.Step, name string, now time.Time, authority, serving **corev1.Secret) error {
	switch s := s.(type) {
	case step.IssueAuthority:
		pair, err := pki.NewAuthority(name, now, s.Lifetime)
		data := map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
		if s.Next {
			data = map[string][]byte{certificates.NextCertificateKey: pair.Certificate, certificates.NextKeyKey: pair.Key}
		}
		return errors.Join(err, patch(authority, s.SecretName, s.ResourceVersion, data, map[string]string{certificates.TriggerAnnotation: s.Trigger}))
	case step.PromoteAuthority:
		return patch(authority, s.SecretName, s.ResourceVersion, map[string][]byte{
			corev1.TLSCertKey: s.Authority.Certificate, corev1.TLSPrivateKeyKey: s.Authority.Key,
			certificates.NextCertificateKey: nil, certificates.NextKeyKey: nil}, nil)
	case step.WriteCertificate:
		pair, err := s.Pair, error(nil)
		if s.Signer != nil {
			pair, err = pki.IssueLeaf(*s.Signer, s.DNSName, now, s.Lifetime)
		}
		return errors.Join(err, patch(serving, s.SecretName, s.ResourceVersion, map[string][]byte{
			corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key, observed.CAKey: s.CABundle,
		}, map[string]string{certificates.TrustedAnnotation: s.Trusted}))
	}
	return fmt.Errorf("%T changes no certificate", s)
}

// patch writes data into a Secret, which may not exist; a nil value is removed.
func patch(of **corev1.Secret, name, version string, data map[string][]byte, annotations map[string]string) (err error) {
	secret := cmp.Or(*of, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}).DeepCopy()
	if secret.ResourceVersion != version {
		err = fmt.Errorf("Secret %s is written at resourceVersion %q and has %q", name, version, secret.ResourceVersion) //nolint:staticcheck // it begins with a kind
	}
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
	*of = secret
	return err
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
