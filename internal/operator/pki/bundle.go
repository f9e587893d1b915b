// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Bundle is an ordered set of trusted certificates, the content of caBundle.
type Bundle []*x509.Certificate

// ParseBundle reads the certificates of a PEM text, without duplicates. It returns an error if
// there is no certificate, or any other PEM block: an API server would refuse the whole text.
func ParseBundle(text []byte) (Bundle, error) {
	var bundle Bundle
	for rest := text; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != certificateBlock {
			return nil, fmt.Errorf("a PEM block of type %s where only certificates belong", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(bundle)+1, err)
		}
		bundle = bundle.With(Bundle{certificate})
	}
	if len(bundle) == 0 {
		return nil, errors.New("no PEM block of type CERTIFICATE")
	}
	return bundle, nil
}

// Encode writes the bundle in PEM. Equal bundles in the same order have equal bytes.
func (b Bundle) Encode() []byte {
	var text bytes.Buffer
	for _, certificate := range b {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw}))
	}
	return text.Bytes()
}

// With appends the certificates of another bundle that are missing.
func (b Bundle) With(others Bundle) Bundle {
	union := slices.Clone(b)
	for _, other := range others {
		if !union.has(other) {
			union = append(union, other)
		}
	}
	return union
}

// Unexpired returns the certificates that have not expired.
func (b Bundle) Unexpired(now time.Time) Bundle {
	return slices.DeleteFunc(slices.Clone(b), func(certificate *x509.Certificate) bool { return now.After(certificate.NotAfter) })
}

// Contains reports whether every certificate of another bundle is in this one.
func (b Bundle) Contains(others Bundle) bool {
	return !slices.ContainsFunc(others, func(other *x509.Certificate) bool { return !b.has(other) })
}

// Same reports whether two bundles have the same certificates, in any order.
func (b Bundle) Same(other Bundle) bool { return b.Contains(other) && other.Contains(b) }

// NotAfter returns when the first of the certificates expires.
func (b Bundle) NotAfter() time.Time {
	return slices.MinFunc(b, func(x, y *x509.Certificate) int { return x.NotAfter.Compare(y.NotAfter) }).NotAfter
}

func (b Bundle) has(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(b, certificate.Equal)
}

func (b Bundle) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, certificate := range b {
		pool.AddCert(certificate)
	}
	return pool
}
