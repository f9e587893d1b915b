// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// credentials are the secrets of one cluster, created at each start.
type credentials struct {
	ca         []byte // PEM: signed the API server's certificate
	serverCert []byte // PEM
	serverKey  []byte // PEM
	tokenKey   []byte // PEM: signs ServiceAccount tokens
	tokenPub   []byte // PEM
	token      string // of the administrator
}

// validity is longer than any test cluster lives.
const validity = 365 * 24 * time.Hour

// newCredentials creates the credentials of an API server at the given address, at the kubernetes
// Service and on the loopback interface.
func newCredentials(address string, now time.Time) (credentials, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return credentials{}, err
	}
	ca := caTemplate(now)
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return credentials{}, err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return credentials{}, err
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, serverTemplate(address, now), ca, serverKey.Public(), caKey)
	if err != nil {
		return credentials{}, err
	}
	c := credentials{ca: pemBlock("CERTIFICATE", caDER), serverCert: pemBlock("CERTIFICATE", serverDER), token: rand.Text()}
	if c.serverKey, _, err = encodeKey(serverKey); err != nil {
		return credentials{}, err
	}
	tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return credentials{}, err
	}
	c.tokenKey, c.tokenPub, err = encodeKey(tokenKey)
	return c, err
}

func caTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "localcluster"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(validity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
}

func serverTemplate(address string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.ParseIP(address), net.ParseIP(serviceAddress), net.ParseIP(loopbackAddress)},
		DNSNames: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
		},
	}
}

func encodeKey(key *ecdsa.PrivateKey) (private, public []byte, err error) {
	privateDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return pemBlock("EC PRIVATE KEY", privateDER), pemBlock("PUBLIC KEY", publicDER), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write stores the credentials in a directory that only the owner can read.
func (c credentials) write(dir string) error {
	files := map[string][]byte{
		"ca.crt":        c.ca,
		"apiserver.crt": c.serverCert,
		"apiserver.key": c.serverKey,
		"sa.key":        c.tokenKey,
		"sa.pub":        c.tokenPub,
		"tokens.csv":    []byte(c.token + ",admin,1,system:masters\n"),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
