// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// backdate is how long before its creation a certificate becomes valid, for API servers whose
	// clock is behind.
	backdate = 10 * time.Minute

	certificateBlock = "CERTIFICATE"
	keyBlock         = "EC PRIVATE KEY"
)

// KeyPair is a certificate and its ECDSA P-256 key, both PEM-encoded.
type KeyPair struct {
	Certificate []byte
	Key         []byte
}

// NewAuthority returns a self-signed certificate authority.
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

// IssueLeaf returns a serving certificate for the DNS name or IP address, signed by the authority.
// It never outlives the authority.
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
	// A converter outside the cluster may have an address and no name.
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
		// RFC 5280 allows 64 characters. Clients verify the subject alternative names instead.
		Subject:   pkix.Name{CommonName: commonName[:min(len(commonName), 64)], Organization: []string{"conversion-operator"}},
		NotBefore: now.Add(-backdate),
		NotAfter:  now.Add(lifetime),
	}, nil
}

// sign generates a key, and signs the template. Without a parent key, the certificate is
// self-signed.
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

// RequireModernTLS configures TLS 1.3, and TLS 1.2 with forward secrecy and authenticated
// encryption for clients without TLS 1.3. This is the "intermediate" configuration of
// https://wiki.mozilla.org/Security/Server_Side_TLS without its ciphers for browsers. The ciphers
// of TLS 1.3 are not configurable.
func RequireModernTLS(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.CipherSuites = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}
