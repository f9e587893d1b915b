// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletPort is the port at which API servers reach the kubelet of a node.
const kubeletPort = 10250

// followPause is the time between two looks at a log that is followed.
const followPause = 200 * time.Millisecond

// kubelet serves what API servers ask kubelets for: logs of containers. Only the API server reaches
// it, through its proxy.
type kubelet struct {
	connections chan net.Conn
	cluster     *Cluster
}

func newKubelet(c *Cluster) (*kubelet, error) {
	k := &kubelet{connections: make(chan net.Conn), cluster: c}
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	listener := tls.NewListener(k, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	go func() { _ = server.Serve(listener) }() // its listener never ends
	return k, nil
}

// selfSigned returns a certificate that API servers accept: they do not verify those of kubelets by
// default.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// closing is a connection that tells when it was closed.
type closing struct {
	net.Conn
	closed context.CancelFunc
}

func (c closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

// serve answers on a connection until it is closed.
func (k *kubelet) serve(ctx context.Context, connection net.Conn) {
	ctx, closed := context.WithCancel(ctx)
	k.connections <- closing{connection, closed}
	<-ctx.Done()
}

// Accept, Close and Addr make the kubelet a listener for the connections that serve gets.
func (k *kubelet) Accept() (net.Conn, error) { return <-k.connections, nil }

// Close does nothing.
func (k *kubelet) Close() error { return nil }

// Addr is none.
func (k *kubelet) Addr() net.Addr { return text("kubelet") }

// logs answers kubectl logs.
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	p := k.cluster.find(client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")})
	if p == nil {
		http.Error(w, "the pod does not run here", http.StatusNotFound)
		return
	}
	starts := p.starts(r.PathValue("container"))
	if r.URL.Query().Get("previous") == "true" {
		starts--
	}
	file, err := os.Open(k.cluster.logFile(p.get(), r.PathValue("container"), starts))
	if err != nil {
		http.Error(w, "the container has no such log", http.StatusNotFound)
		return
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	if most, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		lines = lines[max(0, len(lines)-1-most):]
	}
	for _, line := range lines {
		_, _ = w.Write(line) // the client may be gone
	}
	looks := time.NewTicker(followPause)
	defer looks.Stop()
	for follow := r.URL.Query().Get("follow") == "true"; follow; {
		_ = http.NewResponseController(w).Flush() // as above
		select {
		case <-r.Context().Done():
			return
		case <-p.alive.Done():
			return
		case <-looks.C:
		}
		_, _ = io.Copy(w, file)
		follow = p.starts(r.PathValue("container")) == starts
	}
}

// starts is how often a container was started again.
func (p *pod) starts(container string) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.containers {
		if c.spec.Name == container {
			return c.status.RestartCount
		}
	}
	return 0
}
