// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// maxAtRest is how much memory the program may have with the rules of a policy and without calls, in bytes, besides
// its pages of files, of which the kernel decides.
const maxAtRest = 12 << 20

// TestAtRest prints the memory of a pod without calls, and limits it.
func TestAtRest(t *testing.T) {
	rulesets, certificates := mount(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	address := listener.Addr().String()
	listener.Close()

	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), program, "--rulesets="+rulesets, "--certificates="+certificates, "--bind-address="+address, "--metrics-bind-address=0", "--drain=0s")
	command.Stderr = &log
	expect.NoError(t, command.Start())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a test's own server
	expect.Eventually(t, "it serves", func() (bool, string) { return healthy(t, client, address) })
	process, err := procfs.NewProc(command.Process.Pid)
	expect.NoError(t, err)
	status, err := process.NewStatus()
	expect.NoError(t, err)
	t.Logf("resident %.1f MiB, of which %.1f MiB are not pages of files", mebibytes(status.VmRSS), mebibytes(status.RssAnon))
	if status.RssAnon > maxAtRest {
		t.Errorf("%.1f MiB are not pages of files", mebibytes(status.RssAnon))
	}
	expect.NoError(t, command.Process.Signal(syscall.SIGTERM))
	if err := command.Wait(); err != nil {
		t.Errorf("%v: %s", err, log.String())
	}
}

func mebibytes(size uint64) float64 { return float64(size) / (1 << 20) }

func healthy(t *testing.T, client *http.Client, address string) (bool, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/healthz", http.NoBody)
	expect.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return false, err.Error()
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK, response.Status
}

// mount writes the rules of a sample, as the manager compiles them, and a certificate.
func mount(t *testing.T) (rulesets, certificates string) {
	t.Helper()
	policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
	for file, into := range map[string]any{"2-policy.yaml": policy, "3-crd-both.yaml": crd} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", "crontab-hostport", file))
		expect.NoError(t, err)
		expect.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	ruleset, err := compile.Compile(crd, policy.Spec.Converter.Declarative).Ruleset.Marshal()
	expect.NoError(t, err)
	authority, err := pki.NewAuthority("converter", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "localhost", time.Now(), time.Hour)
	expect.NoError(t, err)
	rulesets, certificates = t.TempDir(), t.TempDir()
	for file, text := range map[string][]byte{
		filepath.Join(rulesets, conversion.StoredName("owner", conversion.HashOf(ruleset))): conversion.Store(ruleset),
		filepath.Join(certificates, "tls.crt"):                                              leaf.Certificate,
		filepath.Join(certificates, "tls.key"):                                              leaf.Key,
	} {
		expect.NoError(t, os.WriteFile(file, text, 0o600))
	}
	return rulesets, certificates
}
