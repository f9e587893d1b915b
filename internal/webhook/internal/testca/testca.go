// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testca issues certificates for tests.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// Bundle is its certificate, in PEM.
	Bundle []byte
}

// Leaf is a serving certificate and its key, in PEM.
type Leaf struct {
	Certificate, Key []byte
	NotAfter         time.Time
}

// New returns a new authority.
func New(t testing.TB) *Authority {
	t.Helper()
	template := template("authority", time.Now().Add(time.Hour))
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	key := newKey(t)
	der := create(t, template, template, key, key)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{certificate: certificate, key: key, Bundle: encode("CERTIFICATE", der)}
}

// Issue returns a serving certificate for a DNS name.
func (a *Authority) Issue(t testing.TB, name string, notAfter time.Time) Leaf {
	t.Helper()
	template := template(name, notAfter)
	template.DNSNames = []string{name}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key := newKey(t)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Leaf{
		Certificate: encode("CERTIFICATE", create(t, template, a.certificate, key, a.key)),
		Key:         encode("PRIVATE KEY", private),
		NotAfter:    template.NotAfter,
	}
}

// TLS returns the certificate as a server presents it.
func (l Leaf) TLS(t testing.TB) tls.Certificate {
	t.Helper()
	certificate, err := tls.X509KeyPair(l.Certificate, l.Key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// Pool returns a pool that trusts this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func template(name string, notAfter time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    notAfter.Add(-24 * time.Hour),
		NotAfter:     notAfter.UTC().Truncate(time.Second),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func create(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
