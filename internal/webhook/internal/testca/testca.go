// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testca issues certificates for tests.
package testca

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// lifetime is that of serving certificates. The authority lives longer than any of them.
const lifetime = 24 * time.Hour

// Authority is a certificate authority.
type Authority struct {
	pair pki.KeyPair
	// Bundle is its certificate, in PEM.
	Bundle []byte
}

// Leaf is a serving certificate and its key, in PEM.
type Leaf struct {
	pki.KeyPair
	NotBefore, NotAfter time.Time
}

// New returns a new authority.
func New(t testing.TB) *Authority {
	t.Helper()
	pair, err := pki.NewAuthority("authority", time.Now(), 10*lifetime)
	expect.NoError(t, err)
	return &Authority{pair: pair, Bundle: pair.Certificate}
}

// Issue returns a serving certificate for a DNS name.
func (a *Authority) Issue(t testing.TB, name string, notAfter time.Time) Leaf {
	t.Helper()
	pair, err := pki.IssueLeaf(a.pair, name, notAfter.Add(-lifetime), lifetime)
	expect.NoError(t, err)
	certificate, err := pki.ParseCertificate(pair.Certificate)
	expect.NoError(t, err)
	return Leaf{pair, certificate.NotBefore, certificate.NotAfter}
}

// TLS returns the certificate as a server presents it.
func (l Leaf) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(l.Certificate, l.Key)
	expect.NoError(t, err)
	return certificate
}

// Pool returns a pool that trusts this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.Bundle)
	return pool
}
