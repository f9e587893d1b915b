// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
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

// reviewer is a converter that answers with the objects of the request after a change.
func reviewer(t *testing.T, answer func(*apiextensionsv1.ConversionResponse) metav1.Status) string {
	t.Helper()
	server := httptest.NewServer(reviews.Answer(func(_ string, response *apiextensionsv1.ConversionResponse) metav1.Status { return answer(response) }))
	t.Cleanup(server.Close)
	return server.URL + "/convert"
}

// TestDraftStrangeConverters: what is wrong with a converter is said, and its texts cannot write to the terminal.
func TestDraftStrangeConverters(t *testing.T) {
	for name, test := range map[string]struct {
		answer         func(*apiextensionsv1.ConversionResponse) metav1.Status
		code           int
		stdout, stderr string
	}{
		"null for an object": {func(response *apiextensionsv1.ConversionResponse) metav1.Status {
			for i := range response.ConvertedObjects {
				response.ConvertedObjects[i] = runtime.RawExtension{Raw: []byte("null")}
			}
			return reviews.Success
		}, 1, "# - an answer of the converter is no object\n", "something is open"},
		"control characters in the reason": {func(*apiextensionsv1.ConversionResponse) metav1.Status {
			return metav1.Status{Status: metav1.StatusFailure, Message: "no\x1b[2J\nway"}
		}, 2, "", ": no[2J way\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run("draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", reviewer(t, test.answer), "--timeout-per-request", "1m")
			checkEnd(t, test.code, err, stdout, test.stdout)
			expect.Contains(t, "stderr", stderr, test.stderr)
		})
	}
}

// TestDraftInterrupted: who interrupts the command is not told to wait for longer.
func TestDraftInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	url := reviewer(t, func(*apiextensionsv1.ConversionResponse) metav1.Status {
		interrupt()
		return reviews.Success
	})
	_, stderr, err := runIn(ctx, strings.NewReader(""), "draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", url)
	want := "Error: crontabs.example.com: ask " + url + ": interrupted\n"
	expect.Equal(t, "exit code and stderr", []any{exitUnable, want}, []any{ExitCode(err), stderr})
}

// TestCalledAs: advice names the program as the user called it.
func TestCalledAs(t *testing.T) {
	root, stderr := NewCommand([]string{pluginFile, "draft", "-f", sampleFile("3-crd-both.yaml")}), bytes.Buffer{}
	root.SetOut(io.Discard)
	root.SetErr(&stderr)
	expect.Equal(t, "exit code", exitFound, ExitCode(root.ExecuteContext(t.Context())))
	expect.Contains(t, "stderr", stderr.String(), "test the policy: "+pluginName+" verify --policy POLICY ")
}
