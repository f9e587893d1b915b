// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod runs conversion webhooks as processes, as pods do: the command serve of the operator's
// binary, and webhooks that it is compared with.
package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// patience bounds the start of a process.
const patience = 30 * time.Second

// Options describe a process.
type Options struct {
	Binary string
	// Args precede the flags --bind-address and --certificates, which Start adds.
	Args []string
	// Certificates is the directory of tls.crt and tls.key.
	Certificates string
	// MemoryLimit is the limit of the container, in bytes, or zero for none.
	MemoryLimit int64
}

// Pod is a process that is ready.
type Pod struct {
	// Port is where it serves HTTPS, at all addresses of this machine.
	Port int
	// Started is the time from its start to the first successful readiness check.
	Started time.Duration
	command *exec.Cmd
	log     bytes.Buffer
	ended   chan struct{}
}

// Start starts a process, and waits until it is ready. The process ends with the context.
func Start(ctx context.Context, options Options) (*Pod, error) {
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	args := append(options.Args, "--bind-address=:"+strconv.Itoa(port), "--certificates="+options.Certificates) //nolint:gocritic // a copy
	p := &Pod{Port: port, command: exec.CommandContext(ctx, options.Binary, args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	if options.MemoryLimit > 0 {
		// As internal/cmd does in a container: there is no container here.
		p.command.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.FormatInt(options.MemoryLimit/10*9, 10))
	}
	began := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // the log has the reason
	}()
	if err := p.untilReady(ctx); err != nil {
		p.Stop()
		return nil, fmt.Errorf("%s %s: %w; it says: %s", options.Binary, args[0], err, p.log.Bytes())
	}
	p.Started = time.Since(began)
	return p, nil
}

// Stop kills the process, and waits for its end.
func (p *Pod) Stop() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// PID is the process.
func (p *Pod) PID() int { return p.command.Process.Pid }

// Memory returns the memory of the process now.
func (p *Pod) Memory() (measure.Memory, error) { return measure.MemoryOf(p.command.Process.Pid) }

// untilReady polls the readiness endpoint until it succeeds, or until the process ends.
func (p *Pod) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Who serves does not matter here: kubelets do not verify certificates either.
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // see above
	}}
	for {
		last := Get(ctx, &client, fmt.Sprintf("https://localhost:%d%s", p.Port, webhook.ReadyPath))
		if last == nil {
			return nil
		}
		select {
		case <-p.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("it does not get ready: %w", last)
		case <-time.After(time.Millisecond):
		}
	}
}

// Get reads a whole answer, which must have status 200.
func Get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// FreePort returns a port that is free now.
func FreePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Certify writes a serving certificate for localhost to a directory, and returns the certificate of
// its authority.
func Certify(dir string) (caBundle []byte, err error) {
	authority, err := pki.NewAuthority("bench", time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	leaf, err := pki.IssueLeaf(authority, "localhost", time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": leaf.Certificate, "tls.key": leaf.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return authority.Certificate, nil
}

// Trusting returns a TLS configuration that trusts an authority.
func Trusting(caBundle []byte) *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caBundle)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
