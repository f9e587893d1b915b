// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// idleTime is the time before the memory of an idle process is read.
const idleTime = time.Second

// patience bounds the start of a process.
const patience = 30 * time.Second

// idle is the measurement of an idle converter process.
type idle struct {
	// ready is the time from the start to the first successful readiness check.
	ready  time.Duration
	memory measure.Memory
}

// serve starts a converter as in a pod, waits until it is ready, measures and stops it.
func serve(ctx context.Context, binary string, plan []byte) (idle, error) {
	dir, err := os.MkdirTemp("", "conversion-operator-bench-")
	if err != nil {
		return idle{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	certificate, err := mount(dir, plan)
	if err != nil {
		return idle{}, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return idle{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var log bytes.Buffer
	command := exec.CommandContext(ctx, binary, "serve", "--drain=0s", "--port="+strconv.Itoa(port),
		"--rulesets="+dir, "--certificates="+dir)
	command.Stdout, command.Stderr = &log, &log
	start := time.Now()
	if err := command.Start(); err != nil {
		return idle{}, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The log has the reason.
		_ = command.Wait()
		cancel()
	}()
	found, err := observe(ctx, command.Process.Pid, port, certificate, start)
	cancel()
	<-ended
	if err != nil {
		return idle{}, fmt.Errorf("%w; it says: %s", err, log.Bytes())
	}
	return found, nil
}

// observe waits until a process is ready, and then measures it after idleTime.
func observe(ctx context.Context, pid, port int, authority []byte, start time.Time) (idle, error) {
	if err := untilReady(ctx, port, authority); err != nil {
		return idle{}, err
	}
	found := idle{ready: time.Since(start)}
	select {
	case <-ctx.Done():
		return idle{}, errors.New("it ended while it should wait")
	case <-time.After(idleTime):
	}
	var err error
	found.memory, err = measure.MemoryOf(pid)
	return found, err
}

// mount writes the files that a converter pod mounts, and returns the certificate of the authority.
func mount(dir string, plan []byte) ([]byte, error) {
	pair, err := pki.NewAuthority("bench", time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	leaf, err := pki.IssueLeaf(pair, "localhost", time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{conversion.StoredName("bench", conversion.HashOf(plan)): conversion.Store(plan), "tls.crt": leaf.Certificate, "tls.key": leaf.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return pair.Certificate, nil
}

// freePort returns a port that is free now.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "localhost:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// untilReady polls the readiness endpoint until it succeeds.
func untilReady(ctx context.Context, port int, authority []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	for {
		last := get(ctx, &client, fmt.Sprintf("https://localhost:%d%s", port, webhook.ReadyPath))
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not get ready: %w", last)
		case <-time.After(time.Millisecond):
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
