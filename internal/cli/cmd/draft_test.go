// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// hostPortRule is the rule of the sample, as the command writes it.
const hostPortRule = "        - format: {from: .hostPort, template: '{host}:{port}', to: {host: .host, port: .port}}\n"

// converterOf serves the policy of the sample, as converter pods do.
func converterOf(t *testing.T) http.Handler {
	t.Helper()
	options := definitions{policy: sampleFile("2-policy.yaml"), crd: sampleFile("3-crd-both.yaml")}
	policy, crd, err := options.read(t.Context(), "", nil)
	expect.NoError(t, err)
	result, found := verify.Compile(policy, crd)
	if len(found) > 0 {
		t.Fatal(listOf(found))
	}
	converter, err := conversion.NewConverter(result.Ruleset)
	expect.NoError(t, err)
	handler := webhook.NewHandler([]webhook.Ruleset{{
		CRD: crd.Name, Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind, Hash: "convert", Pairs: result.Ruleset.Pairs(), Converter: converter,
	}}, webhook.HandlerOptions{Log: logr.Discard()})
	return handler
}

// TestDraftProbe asks a converter over HTTPS and over HTTP.
func TestDraftProbe(t *testing.T) {
	secure, open := httptest.NewUnstartedServer(converterOf(t)), httptest.NewServer(converterOf(t))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // one handshake fails on purpose
	secure.StartTLS()
	t.Cleanup(secure.Close)
	t.Cleanup(open.Close)
	authority := write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	for name, args := range map[string][]string{
		"HTTPS": {"--probe", secure.URL + webhook.ConvertPath + "/convert", "--probe-certificate-authority", authority},
		"HTTP":  {"--probe", open.URL + webhook.ConvertPath + "/convert"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(append([]string{"draft", "-f", sampleFile("3-crd-both.yaml"), "--timeout-per-request", "1m"}, args...)...)
			checkEnd(t, 0, err, stdout, hostPortRule, "# Confirmed by ")
		})
	}
	_, stderr, err := run("draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", secure.URL+webhook.ConvertPath+"/convert")
	checkEnd(t, exitUnable, err, stderr, "certificate")
}

// TestDraftProbeFails: a converter that hangs, or is none, ends the command.
func TestDraftProbeFails(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc // nil if it hangs
		args   []string
		want   string
	}{
		"it hangs":         {nil, []string{"--timeout-per-request", "50ms"}, "does not get to answering"},
		"it hangs, in all": {nil, []string{"--timeout", "50ms"}, "raise --timeout"},
		"another page":     {http.NotFound, nil, "answered HTTP status 404"},
		"it refuses all": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no kind of mine", http.StatusInternalServerError)
		}, nil, "refuses every object"},
		"it answers anything": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"kind": "ConversionReview"}`) }, nil, "ConversionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			hang := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.answer == nil {
					<-hang
					return
				}
				test.answer(w, r)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Start()
			defer server.Close()
			defer close(hang) // also if the command ends before its request arrives
			stdout, stderr, err := run(append([]string{"draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", server.URL + "/convert"}, test.args...)...)
			checkFailure(t, exitUnable, stdout, stderr, err, test.want)
		})
	}
}
