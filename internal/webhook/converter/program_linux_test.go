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
	pid  int
}

// run starts the program with a ruleset. It must not end before the test.
func run(t *testing.T, ruleset *conversion.Ruleset) *victim {
	t.Helper()
	text, err := ruleset.Marshal()
	expect.NoError(t, err)
	authority, err := pki.NewAuthority("converter", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "localhost", time.Now(), time.Hour)
	expect.NoError(t, err)
	v := &victim{address: freeAddress(t), metrics: freeAddress(t), hash: conversion.HashOf(text)}
	rulesets, certificates := t.TempDir(), t.TempDir()
	for file, text := range map[string][]byte{
		filepath.Join(rulesets, conversion.StoredName("owner", v.hash)): conversion.Store(text),
		filepath.Join(certificates, "tls.crt"):                          leaf.Certificate,
		filepath.Join(certificates, "tls.key"):                          leaf.Key,
	} {
		expect.NoError(t, os.WriteFile(file, text, 0o600))
	}
	var log bytes.Buffer
	command := exec.Command(program, "--rulesets="+rulesets, "--certificates="+certificates, "--bind-address="+v.address, "--metrics-bind-address="+v.metrics, "--drain=0s")
	command.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", webhook.DefaultMemoryLimit/5*4))
	command.Stderr = &log
	expect.NoError(t, command.Start())
	v.pid = command.Process.Pid
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the program: %v: %.3000s", err, log.String())
		}
	})
	client := v.client(t, "127.0.0.2")
	expect.Eventually(t, "it serves", func() (bool, string) {
		status, answer := v.get(t, client, webhook.HealthPath)
		return status == http.StatusOK, answer
	})
	return v
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
		response, err = client.Do(made)
	}
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text) + fmt.Sprint(err)
}
