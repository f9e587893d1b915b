// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// victim is the program as a converter pod runs it, with the default memory limit.
type victim struct {
	address, metrics string
	// hash is that of its ruleset.
	hash string
	// leaf is its first certificate, in the folder certificates.
	leaf         pki.KeyPair
	certificates string
	log          record
	pid          int
	// end ends the program. It must not end before.
	end func()
}

// record is the log of a program.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(text)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// run starts the program with a ruleset, until the test ends.
func run(t *testing.T, ruleset *conversion.Ruleset, flags ...string) *victim {
	t.Helper()
	text, err := ruleset.Marshal()
	expect.NoError(t, err)
	v := &victim{address: freeAddress(t), metrics: freeAddress(t), hash: conversion.HashOf(text), leaf: issued(t), certificates: t.TempDir()}
	v.mount(t, v.leaf)
	rulesets := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(rulesets, conversion.StoredName("owner", v.hash)), conversion.Store(text), 0o600))
	command := exec.Command(program, append(flags, "--rulesets="+rulesets, "--certificates="+v.certificates, "--bind-address="+v.address, "--metrics-bind-address="+v.metrics, "--drain=0s")...)
	command.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", webhook.DefaultMemoryLimit/5*4))
	command.Stderr = &v.log
	expect.NoError(t, command.Start())
	v.pid = command.Process.Pid
	v.end = sync.OnceFunc(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the program: %v: %.3000s", err, v.log.String())
		}
	})
	t.Cleanup(v.end)
	client := v.client(t, "127.0.0.2")
	expect.Eventually(t, "it serves", func() (bool, string) {
		status, answer := v.get(t, client, webhook.HealthPath)
		return status == http.StatusOK, answer
	})
	return v
}

func issued(t *testing.T) pki.KeyPair {
	t.Helper()
	authority, err := pki.NewAuthority("converter", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "localhost", time.Now(), time.Hour)
	expect.NoError(t, err)
	return leaf
}

// mount replaces the certificate of the program.
func (v *victim) mount(t *testing.T, leaf pki.KeyPair) {
	t.Helper()
	for file, text := range map[string][]byte{"tls.crt": leaf.Certificate, "tls.key": leaf.Key} {
		expect.NoError(t, os.WriteFile(filepath.Join(v.certificates, file), text, 0o600))
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// status is that of the process.
func (v *victim) status(t *testing.T) procfs.ProcStatus {
	t.Helper()
	process, err := procfs.NewProc(v.pid)
	expect.NoError(t, err)
	status, err := process.NewStatus()
	expect.NoError(t, err)
	return status
}

// client connects from an address of this machine.
func (v *victim) client(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test's own server
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get sends a request without a body.
func (v *victim) get(t *testing.T, client *http.Client, path string) (status int, answer string) {
	t.Helper()
	return v.send(t.Context(), client, hostile{method: http.MethodGet, path: path}, "")
}

// send sends a request, and returns the answer, or why there was none.
func (v *victim) send(ctx context.Context, client *http.Client, request hostile, body string) (status int, answer string) {
	made, err := http.NewRequestWithContext(ctx, request.method, "https://"+v.address+request.path, strings.NewReader(body))
	var response *http.Response
	if err == nil {
		made.Header.Set("Content-Type", "application/json")
		made.Header.Set("Authorization", "Bearer "+secretValue)
		response, err = client.Do(made)
	}
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text) + fmt.Sprint(err)
}
