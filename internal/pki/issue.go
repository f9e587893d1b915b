// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// backdate is how long before it is made a certificate begins to be valid, for
	// API servers whose clock is behind ours.
	backdate = 10 * time.Minute

	certificateBlock = "CERTIFICATE"
	keyBlock         = "EC PRIVATE KEY"
)

// KeyPair is a certificate and its ECDSA P-256 key, both PEM-encoded.
type KeyPair struct {
	Certificate []byte
	Key         []byte
}

// NewAuthority returns a self-signed certificate authority that is valid for a lifetime.
func NewAuthority(commonName string, now time.Time, lifetime time.Duration) (KeyPair, error) {
	template, err := newTemplate(commonName, now, lifetime)
	if err != nil {
		return KeyPair{}, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return sign(template, template, nil)
}

// IssueLeaf returns a serving certificate for the DNS name, or the IP address, signed
// by the authority and valid for a lifetime. It never outlives the authority.
func IssueLeaf(authority KeyPair, dnsName string, now time.Time, lifetime time.Duration) (KeyPair, error) {
	parent, err := ParseCertificate(authority.Certificate)
	if err != nil {
		return KeyPair{}, fmt.Errorf("certificate authority: %w", err)
	}
	key, err := parseKey(authority.Key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("certificate authority: %w", err)
	}
	template, err := newTemplate(dnsName, now, lifetime)
	if err != nil {
		return KeyPair{}, err
	}
	if template.NotAfter.After(parent.NotAfter) {
		template.NotAfter = parent.NotAfter
	}
	// A converter outside the cluster may have no name but its address.
	if address := net.ParseIP(dnsName); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{dnsName}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return sign(template, parent, key)
}

func newTemplate(commonName string, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("certificate serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: truncate(commonName), Organization: []string{"conversion-operator"}},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(lifetime),
	}, nil
}

// truncate keeps a common name within the 64 characters of RFC 5280, ub-common-name.
// Nothing verifies it: names are verified by the subject alternative name.
func truncate(name string) string {
	if len(name) > 64 {
		return name[:64]
	}
	return name
}

// sign makes a key for the template and signs it; without a parent key it signs itself.
func sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("certificate key: %w", err)
	}
	if parentKey == nil {
		parentKey = key
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign certificate: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode certificate key: %w", err)
	}
	return KeyPair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}),
	}, nil
}
