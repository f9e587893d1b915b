// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// ParseCertificate returns the only certificate of a PEM text.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != certificateBlock {
		return nil, errors.New("no PEM block of type CERTIFICATE")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("more than one PEM block where one certificate is wanted")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return certificate, nil
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

// CheckAuthority returns why the key pair cannot serve as a certificate authority now, or nil.
func CheckAuthority(authority KeyPair, now time.Time) error {
	certificate, err := checkPair(authority)
	if err != nil {
		return err
	}
	if !certificate.IsCA {
		return errors.New("the certificate is not a certificate authority")
	}
	return checkTime(certificate, now)
}

// CheckLeaf returns why the key pair cannot serve the DNS name under the authority now, or nil.
func CheckLeaf(leaf KeyPair, authority []byte, dnsName string, now time.Time) error {
	certificate, err := checkPair(leaf)
	if err != nil {
		return err
	}
	root, err := ParseCertificate(authority)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: dnsName, CurrentTime: now})
	return err
}

// IssueTime returns when a certificate was issued, by the clock of who issued it.
func IssueTime(certificate *x509.Certificate) time.Time { return certificate.NotBefore.Add(backdate) }

// RenewalTime returns when a certificate is due for renewal: two thirds of its
// life, the rule that cert-manager's own authority follows.
func RenewalTime(certificate *x509.Certificate) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotBefore.Add(life * 2 / 3)
}

func checkPair(pair KeyPair) (*x509.Certificate, error) {
	certificate, err := ParseCertificate(pair.Certificate)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(pair.Key)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("the private key does not belong to the certificate")
	}
	return certificate, nil
}

func checkTime(certificate *x509.Certificate, now time.Time) error {
	if now.Before(certificate.NotBefore) {
		return fmt.Errorf("the certificate is not valid before %s; correct the clock, if that is behind", certificate.NotBefore.Format(time.RFC3339))
	}
	if !now.Before(certificate.NotAfter) {
		return fmt.Errorf("the certificate expired at %s", certificate.NotAfter.Format(time.RFC3339))
	}
	return nil
}
