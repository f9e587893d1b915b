// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletPort is the port at which API servers reach the kubelet of a node.
const kubeletPort = 10250

// followPause is the time between two looks at a log that is followed.
const followPause = 200 * time.Millisecond

// kubeletHost is the address of the one kubelet of all nodes. The proxy of the API server leads to it.
func (c *Cluster) kubeletHost() string { return fmt.Sprintf("127.%d.0.1", c.network) }

// serveKubelet serves what API servers ask kubelets for: logs of containers.
func (c *Cluster) serveKubelet() error {
	// API servers do not verify certificates of kubelets by default.
	certificate, key, err := cert.GenerateSelfSignedCertKey("kubelet", nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	c.kubelet, err = tls.Listen("tcp", fmt.Sprintf("%s:%d", c.kubeletHost(), kubeletPort), &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", c.serveLogs)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	c.run(func() { _ = server.Serve(c.kubelet) }) // until Close
	return nil
}

// serveLogs answers kubectl logs.
func (c *Cluster) serveLogs(w http.ResponseWriter, r *http.Request) {
	p := c.find(client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")})
	if p == nil {
		http.Error(w, "the pod does not run here", http.StatusNotFound)
		return
	}
	starts := p.starts(r.PathValue("container"))
	if r.URL.Query().Get("previous") == "true" {
		starts--
	}
	file, err := os.Open(c.logFile(p.get(), r.PathValue("container"), starts))
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
	_, _ = w.Write(bytes.Join(lines, nil)) // the client may be gone
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
