// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"text/template"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

//go:embed files
var configFiles embed.FS

var configTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(configFiles, "files/*"))

func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	err := configTemplates.ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
}

// writeConfig writes the components' configuration files into the directory, at the path that the
// calling process sees.
func (s spec) writeConfig(c credentials) error {
	files := map[string]any{"kubeconfig": map[string]string{
		"Name": s.Name, "Server": s.server(), "Token": c.token, "CA": base64.StdEncoding.EncodeToString(c.cert),
	}}
	if !s.onLoopback() {
		maps.Copy(files, s.nodeFiles())
	}
	return s.writeFiles(files)
}

// nodeFiles are the configuration files that every node has, with their data.
func (s spec) nodeFiles() map[string]any {
	return map[string]any{"containerd.toml": s, "kubelet.yaml": s, "network": s, "pods.conflist": s}
}

func (s spec) writeFiles(files map[string]any) error {
	for name, data := range files {
		content, err := render(name, data)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.Dir, configPath(name)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// configPath returns the path of a file in the cluster's directory. The CNI configuration has its
// own folder, because the runtime reads every file there.
func configPath(name string) string {
	if name == "pods.conflist" {
		return filepath.Join("cni", name)
	}
	return name
}

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
