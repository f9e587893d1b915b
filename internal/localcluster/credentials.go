// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// credentials are the secrets of one cluster, created at each start. They are valid for a year.
type credentials struct {
	cert     []byte // PEM: of the API server, and of the authority that signed it
	key      []byte // PEM: of the API server
	tokenKey []byte // PEM: signs and verifies ServiceAccount tokens
	token    string // of the administrator
}

// newCredentials creates the credentials of an API server at the given address, at the kubernetes
// Service and on the loopback interface.
func newCredentials(address string) (credentials, error) {
	c := credentials{token: rand.Text()}
	var keyErr, tokenErr error
	c.cert, c.key, keyErr = cert.GenerateSelfSignedCertKey(address, []net.IP{net.ParseIP(serviceAddress), net.ParseIP(loopbackAddress)},
		[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"})
	c.tokenKey, tokenErr = keyutil.MakeEllipticPrivateKeyPEM()
	return c, errors.Join(keyErr, tokenErr)
}

// write stores the credentials in a directory that only the owner can read.
func (c credentials) write(dir string) error {
	files := map[string][]byte{
		"apiserver.crt": c.cert,
		"apiserver.key": c.key,
		"sa.key":        c.tokenKey,
		"tokens.csv":    []byte(c.token + ",admin,1,system:masters\n"),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
