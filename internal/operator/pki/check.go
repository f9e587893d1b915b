// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Problem classifies what is wrong with a certificate.
type Problem int

// Problems of certificates.
const (
	// NotAKeyPair: certificate or key is missing or unreadable.
	NotAKeyPair Problem = iota + 1
	// KeyMismatch: the private key does not belong to the certificate.
	KeyMismatch
	// NotYetValid: the validity of the certificate begins later.
	NotYetValid
	// Expired: the certificate has expired.
	Expired
	// WrongName: the certificate is for other DNS names.
	WrongName
	// CAMismatch: the certificate was not issued by a trusted authority.
	CAMismatch
	// NotAnAuthority: the certificate may not sign others.
	NotAnAuthority
)

// Error describes why a certificate cannot be used.
type Error struct {
	Problem Problem
	message string
}

func (e *Error) Error() string { return e.message }

func problemf(problem Problem, format string, args ...any) *Error {
	return &Error{problem, fmt.Sprintf(format, args...)}
}

// ProblemOf returns the problem of an error of this package.
func ProblemOf(err error) Problem {
	if problem, ok := errors.AsType[*Error](err); ok {
		return problem.Problem
	}
	return NotAKeyPair
}

// ParseCertificate returns the first certificate of a PEM text. If the certificates of its issuers
// follow, that is the serving certificate.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	bundle, err := ParseBundle(text)
	if err != nil {
		return nil, err
	}
	return bundle[0], nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return nil, errors.New("no PEM block of type EC PRIVATE KEY")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	return key, nil
}

// CheckAuthority returns an *Error if the key pair, which NewAuthority issued, cannot serve as a
// certificate authority now.
func CheckAuthority(authority KeyPair, now time.Time) error {
	bundle, err := ParseBundle(authority.Certificate)
	if err != nil {
		return problemf(NotAKeyPair, "%s", err)
	}
	if len(bundle) > 1 {
		return problemf(NotAKeyPair, "more than one certificate where an authority has one")
	}
	certificate := bundle[0]
	key, err := parseKey(authority.Key)
	if err != nil {
		return problemf(NotAKeyPair, "%s", err)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return problemf(KeyMismatch, "the private key does not belong to the certificate")
	}
	if !certificate.IsCA {
		return problemf(NotAnAuthority, "the certificate is not a certificate authority")
	}
	return checkTime(certificate, now)
}

// CheckPair returns an *Error if the key pair is unusable at any time. The key may be of any kind
// that TLS supports. The certificate may be followed by those of its issuers.
func CheckPair(leaf KeyPair) error {
	if len(leaf.Certificate) == 0 || len(leaf.Key) == 0 {
		return problemf(NotAKeyPair, "tls.crt and tls.key must both be there, in PEM")
	}
	certificate, err := ParseCertificate(leaf.Certificate)
	if err != nil {
		return problemf(NotAKeyPair, "tls.crt: %s", err)
	}
	if _, err := tls.X509KeyPair(leaf.Certificate, leaf.Key); err == nil {
		return nil
	}
	own := pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw})
	if block, _ := pem.Decode(leaf.Key); block == nil || x509Key(block.Bytes) != nil {
		return problemf(NotAKeyPair, "tls.key is not a private key in PEM")
	}
	_, err = tls.X509KeyPair(own, leaf.Key)
	return problemf(KeyMismatch, "the private key does not belong to the certificate: %s", err)
}

// x509Key returns an error if the bytes are not a private key.
func x509Key(der []byte) error {
	if _, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return nil
	}
	if _, err := x509.ParseECPrivateKey(der); err == nil {
		return nil
	}
	_, err := x509.ParsePKCS1PrivateKey(der)
	return err
}

// CheckLeaf returns an *Error if an API server that trusts the bundle would refuse a server with
// this key pair and DNS name now.
func CheckLeaf(leaf KeyPair, trusted Bundle, dnsName string, now time.Time) error {
	if err := CheckPair(leaf); err != nil {
		return err
	}
	chain, err := ParseBundle(leaf.Certificate)
	if err != nil {
		return problemf(NotAKeyPair, "tls.crt: %s", err)
	}
	if err := checkTime(chain[0], now); err != nil {
		return err
	}
	if err := chain[0].VerifyHostname(dnsName); err != nil {
		return problemf(WrongName, "%s", err)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots: trusted.pool(), Intermediates: chain[1:].pool(), CurrentTime: now, DNSName: dnsName,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return problemf(CAMismatch, "%s", err)
	}
	return nil
}

// RenewalTime returns when to renew a certificate: before its end by the given duration, or, if
// that is zero, at two thirds of its lifetime, which is cert-manager's default. If the certificate
// is valid for longer than the wanted lifetime, the end of the wanted lifetime counts.
func RenewalTime(certificate *x509.Certificate, lifetime, before time.Duration) time.Time {
	end := certificate.NotAfter
	if wanted := certificate.NotBefore.Add(backdate + lifetime); wanted.Before(end) {
		end = wanted
	}
	if before > 0 {
		return end.Add(-before)
	}
	return certificate.NotBefore.Add(end.Sub(certificate.NotBefore) * 2 / 3)
}

// Urgent reports whether less than a sixth of a certificate's lifetime remains, half of the
// time that remains at the default renewal.
func Urgent(certificate *x509.Certificate, now time.Time) bool {
	return certificate.NotAfter.Sub(now) < certificate.NotAfter.Sub(certificate.NotBefore)/6
}

func checkTime(certificate *x509.Certificate, now time.Time) error {
	if now.Before(certificate.NotBefore) {
		return problemf(NotYetValid, "the certificate is not valid before %s", certificate.NotBefore.Format(time.RFC3339))
	}
	if now.After(certificate.NotAfter) {
		return problemf(Expired, "the certificate expired at %s", certificate.NotAfter.Format(time.RFC3339))
	}
	return nil
}
