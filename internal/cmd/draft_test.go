// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/draft"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/verify"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// hostPortRule is the rule of the sample, as the command writes it.
const hostPortRule = "        - format: {from: .hostPort, template: '{host}:{port}', to: {host: .host, port: .port}}\n"

func TestDraft(t *testing.T) {
	crd, pairs := sampleFile("3-crd-both.yaml"), write(t, "pairs.yaml", `
{apiVersion: example.com/v1beta1, kind: CronTab, metadata: {name: a, namespace: x}, hostPort: "alpha:12"}
---
{apiVersion: v1, kind: List, items: [
  {apiVersion: example.com/v1, kind: CronTab, metadata: {name: a, namespace: x}, host: alpha, port: "12"},
  {apiVersion: example.com/v1, kind: CronTab, metadata: {name: a, namespace: y}, host: beta, port: "13"},
  {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}}]}
`)
	twice := write(t, "twice.yaml", "{apiVersion: example.com/v1, kind: CronTab, metadata: {name: a}}\n---\n{apiVersion: example.com/v1, kind: CronTab, metadata: {name: a}}\n")
	rivals := write(t, "rivals.yaml", strings.NewReplacer("host: {type", "hostPortA: {type", "port: {type", "hostPortB: {type").Replace(readFile(t, crd)))
	done := "test the policy: conversion-operator verify --policy POLICY --crd " + crd + " -f OBJECTS\n"
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"schemas":            {[]string{"-f", crd}, 0, "        # Guessed from the schemas (0.75): the name joins theirs, the description shows the template.\n" + hostPortRule, done},
		"versions":           {[]string{"-f", crd, "--from", "v1beta1", "--to", "v1"}, 0, hostPortRule, done},
		"the other way":      {[]string{"-f", crd, "--to", "v1beta1"}, 1, "      hub: v1beta1\n", done},
		"with policies":      {[]string{"-f", crd, "-f", sampleFile("2-policy.yaml"), "crontabs.example.com"}, 0, hostPortRule, "rules: 1"},
		"pairs":              {[]string{"-f", crd, "--pairs", pairs}, 0, "        # Confirmed by 1 pair with 1 different value; in the schemas: the name joins theirs, the description shows the template.\n" + hostPortRule, "pairs: 1, objects at one version only: 1, of another kind or version: 1\n"},
		"rivals":             {[]string{"-f", rivals}, 1, "# Ambiguous, without a rule, and preserved. Decide, and add rules:\n# - v1beta1 .hostPort: ", "Error: something is open; see the comments in the policy\n"},
		"no pairs":           {[]string{"-f", crd, "--pairs", sampleFile("objects.yaml")}, 2, "", "no object of the kind CronTab is there at v1beta1 and at v1"},
		"one object twice":   {[]string{"-f", crd, "--pairs", twice}, 2, "", "there is another object a at v1"},
		"one version":        {[]string{"-f", sampleFile("1-crd-v1beta1.yaml")}, 2, "", "has only the version v1beta1"},
		"no such version":    {[]string{"-f", crd, "--from", "v3"}, 2, "", "--from must be one of v1beta1, is \"v3\""},
		"no such hub":        {[]string{"-f", crd, "--to", "v3"}, 2, "", "--from must be one of v1, v1beta1"},
		"another definition": {[]string{"-f", crd, "other.example.com"}, 2, "", "has no CustomResourceDefinition other.example.com, only: crontabs.example.com"},
		"no definition":      {[]string{"-f", sampleFile("2-policy.yaml")}, 2, "", "has no CustomResourceDefinition\n"},
		"nothing":            {nil, 2, "", "which CustomResourceDefinition? Pass its file with -f, or its name in the cluster"},
		"no URL":             {[]string{"-f", crd, "--probe", "converter"}, 2, "", "is not the URL of a converter"},
		"without TLS":        {[]string{"-f", crd, "--probe", "http://converter.example.com/convert"}, 2, "", "http is only for a converter on localhost"},
		"hint":               {[]string{"-f", rivals, "--move", ".hostPort=.hostPortA"}, 0, "- move: {from: .hostPort, to: .hostPortA}\n", "rules: 1"},
		"half a hint":        {[]string{"-f", crd, "--move", ".hostPort"}, 2, "", "--move must be two paths"},
		"authority":          {[]string{"-f", crd, "--probe-certificate-authority", crd}, 2, "", "add --probe"},
		"no authority":       {[]string{"-f", crd, "--probe", "https://localhost:1/convert", "--probe-certificate-authority", crd}, 2, "", "no certificate in PEM"},
		"no answer":          {[]string{"-f", crd, "--probe", "http://localhost:1/convert"}, 2, "", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run(append([]string{"draft"}, test.args...)...)
			if ExitCode(err) != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
				t.Errorf("exit code %d, want %d; stderr %q lacks %q, or stdout lacks %q:\n%s", ExitCode(err), test.code, stderr, test.stderr, test.stdout, stdout)
			}
			if test.code < 2 {
				// What the command writes is a policy that verify accepts.
				policy := write(t, "policy.yaml", stdout)
				if _, stderr, err := run("verify", "--policy", policy, "--crd", test.args[1]); err != nil {
					t.Errorf("verify refuses the policy: %s", stderr)
				}
			}
		})
	}
}

func TestDraftJSON(t *testing.T) {
	stdout, _, err := run("draft", "-f", sampleFile("3-crd-both.yaml"), "-o", "json")
	expect.NoError(t, err)
	found := draft.Draft{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &found))
	if len(found.Rules) != 1 || found.Rules[0].Rule.Format == nil || found.Policy.Spec.Converter.Declarative.Hub != "v1" || found.Format != draft.Format {
		t.Errorf("the draft is %+v", found)
	}
}

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
			stdout, stderr, err := run(append([]string{"draft", "-f", sampleFile("3-crd-both.yaml"), "--timeout-per-request", "1m"}, args...)...)
			if err != nil || !strings.Contains(stdout, hostPortRule) || !strings.Contains(stdout, "# Confirmed by ") {
				t.Errorf("%v, stderr %s, stdout:\n%s", err, stderr, stdout)
			}
		})
	}
	if _, stderr, err := run("draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", secure.URL+webhook.ConvertPath+"/convert"); ExitCode(err) != exitUnable || !strings.Contains(stderr, "certificate") {
		t.Errorf("a certificate of an unknown authority is accepted: %v", err)
	}
}

// TestDraftProbeFails: a converter that hangs, or is none, ends the command.
func TestDraftProbeFails(t *testing.T) {
	hang := make(chan struct{})
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		args   []string
		want   string
	}{
		"it hangs":         {func(http.ResponseWriter, *http.Request) { <-hang }, []string{"--timeout-per-request", "50ms"}, "does not get to answering"},
		"it hangs, in all": {func(http.ResponseWriter, *http.Request) { <-hang }, []string{"--timeout", "50ms"}, "raise --timeout"},
		"another page":     {http.NotFound, nil, "answered HTTP status 404"},
		"it refuses all": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no kind of mine", http.StatusInternalServerError)
		}, nil, "refuses every object"},
		"it answers anything": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"kind": "ConversionReview"}`) }, nil, "ConversionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(test.answer)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Start()
			defer server.Close()
			if strings.HasPrefix(name, "it hangs") {
				defer func() { hang <- struct{}{} }()
			}
			stdout, stderr, err := run(append([]string{"draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", server.URL + "/convert"}, test.args...)...)
			if ExitCode(err) != exitUnable || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("%v, stderr %q lacks %q, stdout:\n%s", err, stderr, test.want, stdout)
			}
		})
	}
}
