// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// certificateEvery is the time between two reads of the certificate. Both files have a few kilobytes, and
// reading them is simpler and surer than a watch, which can miss changes.
const certificateEvery = time.Second

// certificate is the serving certificate in a directory like a mounted Secret.
type certificate struct {
	directory string
	log       logr.Logger
	// every is certificateEvery, except in tests.
	every time.Duration
	// current is the last certificate that was complete, and files are those that it was made of.
	current atomic.Pointer[tls.Certificate]
	files   [2][]byte
}

// openCertificate returns the certificate of a directory. It fails if there is none, or if certificate and key
// do not match.
func openCertificate(directory string, log logr.Logger) (*certificate, error) {
	c := &certificate{directory: directory, log: log, every: certificateEvery}
	if _, err := c.load(); err != nil {
		return nil, fmt.Errorf("loading the serving certificate from %s: %w", directory, err)
	}
	return c, nil
}

// get is for tls.Config.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// expiry returns when the certificate expires, in seconds of Unix time.
func (c *certificate) expiry() float64 { return float64(c.current.Load().Leaf.NotAfter.Unix()) }

// follow serves the certificate that is in the directory, until the context ends. While there is none, it serves
// the previous one.
func (c *certificate) follow(ctx context.Context) error {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	var reported string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			changed, err := c.load()
			switch {
			case err == nil:
				reported = ""
			case err.Error() != reported:
				reported = err.Error()
				c.log.Error(err, "The serving certificate cannot be loaded; the converter serves the previous one", "directory", c.directory)
			}
			if changed {
				c.log.Info("Serving another certificate", "notAfter", c.current.Load().Leaf.NotAfter)
			}
		}
	}
}

// load reports whether the certificate is another one.
func (c *certificate) load() (changed bool, err error) {
	var files [2][]byte
	for i, name := range [...]string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if files[i], err = os.ReadFile(filepath.Join(c.directory, name)); err != nil {
			return false, err
		}
	}
	if bytes.Equal(files[0], c.files[0]) && bytes.Equal(files[1], c.files[1]) {
		return false, nil
	}
	loaded, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return false, err
	}
	c.files = files
	c.current.Store(&loaded)
	return true, nil
}
