// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// reviewer is a converter that answers with the result of a function.
func reviewer(t *testing.T, answer func(*apiextensionsv1.ConversionResponse, *apiextensionsv1.ConversionRequest)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := apiextensionsv1.ConversionReview{}
		expect.NoError(t, json.NewDecoder(r.Body).Decode(&review))
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID}
		review.Response.Result.Status = "Success"
		answer(review.Response, review.Request)
		expect.NoError(t, json.NewEncoder(w).Encode(review))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/convert"
}

// TestDraftStrangeConverters: what is wrong with a converter is said, and its texts cannot write to the terminal.
func TestDraftStrangeConverters(t *testing.T) {
	for name, test := range map[string]struct {
		answer         func(*apiextensionsv1.ConversionResponse, *apiextensionsv1.ConversionRequest)
		code           int
		stdout, stderr string
	}{
		"null for an object": {func(response *apiextensionsv1.ConversionResponse, request *apiextensionsv1.ConversionRequest) {
			for range request.Objects {
				response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: []byte("null")})
			}
		}, 1, "# - an answer of the converter is no object\n", "something is open"},
		"control characters in the reason": {func(response *apiextensionsv1.ConversionResponse, _ *apiextensionsv1.ConversionRequest) {
			response.Result.Status, response.Result.Message = "Failure", "no\x1b[2J\nway"
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
	url := reviewer(t, func(*apiextensionsv1.ConversionResponse, *apiextensionsv1.ConversionRequest) { interrupt() })
	_, stderr, err := runIn(ctx, strings.NewReader(""), "draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", url)
	want := "Error: crontabs.example.com: ask " + url + ": interrupted\n"
	expect.Equal(t, "exit code and stderr", []any{exitUnable, want}, []any{ExitCode(err), stderr})
}

// TestDraftAdvice: the command that tests the policy can be run.
func TestDraftAdvice(t *testing.T) {
	crd := sampleFile("3-crd-both.yaml")
	for want, files := range map[string][]string{
		"verify --policy POLICY --crd " + crd + " -f OBJECTS\n": {"-f", crd},
		"verify --policy POLICY --crd CRD -f OBJECTS\n":         {"-f", crd, "-f", sampleFile("2-policy.yaml")},
	} {
		for program, file := range map[string]string{programName: programName, pluginName: pluginFile} {
			root, stderr := NewCommand(append([]string{file, "draft"}, files...)), bytes.Buffer{}
			root.SetOut(&bytes.Buffer{})
			root.SetErr(&stderr)
			expect.Equal(t, "exit code", exitFound, ExitCode(root.ExecuteContext(t.Context())))
			expect.Contains(t, "stderr of "+program, stderr.String(), "test the policy: "+program+" "+want)
		}
	}
}
