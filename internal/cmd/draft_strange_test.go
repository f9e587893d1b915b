// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// strangeWidgets is a definition whose versions have these properties in .spec.
const strangeWidgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {
  group: example.com, scope: Namespaced, names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}, versions: [
  {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}},
  {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}]}}
`

// TestDraftStrangeSchemas: whatever names and values schemas have, API servers accept the policy, and it has the rule or
// says why not.
func TestDraftStrangeSchemas(t *testing.T) {
	enum := func(format string) string {
		var all []string
		for i := range 200 {
			all = append(all, fmt.Sprintf(format, i))
		}
		return "mode: {type: string, enum: [" + strings.Join(all, ", ") + "]}"
	}
	for name, test := range map[string]struct {
		spoke, hub string
		code       int
		want       string
	}{
		"words that are booleans in YAML 1.1": {
			`mode: {type: string, enum: ["On", "Off"]}`, `mode: {type: string, enum: ["on", "off"]}`, 0,
			`- values: {from: .spec.mode, to: .spec.mode, table: [{from: "Off", to: "off"}, {from: "On", to: "on"}]}`,
		},
		"a default that is a boolean in YAML 1.1": {`x: {type: string}`, `x: {type: string}, legacy: {type: string, default: "no"}`, 0, `- default: {to: .spec.legacy, value: "no"}`},
		"keys that are booleans in YAML 1.1": {
			`yN: {type: string, description: "y:n"}`, `"y": {type: string}, "n": {type: string}`, 0,
			`- format: {from: .spec.yN, template: '{y}:{n}', to: {"n": .spec.n, "y": .spec.y}}`,
		},
		"letters of other languages": {`größe: {type: string}`, `größen: {type: string}`, 0, `- move: {from: '.spec["größe"]', to: '.spec["größen"]'}`},
		"a digit first":              {`2fast: {type: string}`, `2faster: {type: string}`, 0, `- move: {from: '.spec["2fast"]', to: '.spec["2faster"]'}`},
		"quotes":                     {`'my"name': {type: string}`, `'my"names': {type: string}`, 1, `my"name"]: a policy cannot have the rule: the path .spec["my"name"] cannot be written in a policy`},
		"many values":                {enum("Value%d"), enum("value-%d"), 1, "a values rule has at most 128 pairs, and there are 200"},
		"a long value": {
			fmt.Sprintf("mode: {type: string, enum: [%s, B]}", strings.Repeat("A", 254)), fmt.Sprintf("mode: {type: string, enum: [%s, b]}", strings.Repeat("a", 254)), 1,
			"a value in a values rule has at most 253 characters",
		},
		"the same name at another type": {`tags: {type: string, description: "comma-separated list of tags"}`, `tags: {type: array, items: {type: string}}`, 0, "# Guessed from the schemas: same name."},
	} {
		t.Run(name, func(t *testing.T) {
			crd := write(t, "crd.yaml", fmt.Sprintf(strangeWidgets, test.spoke, test.hub))
			stdout, stderr, err := run("draft", "-f", crd)
			if ExitCode(err) != test.code || !strings.Contains(stdout, test.want) {
				t.Errorf("exit code %d, want %d; stderr is %q; stdout lacks %q:\n%s", ExitCode(err), test.code, stderr, test.want, stdout)
			}
			if _, stderr, err := run("verify", "--policy", write(t, "policy.yaml", stdout), "--crd", crd); err != nil {
				t.Errorf("verify refuses the policy: %s\n%s", stderr, stdout)
			}
		})
	}
}

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
			if ExitCode(err) != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
				t.Errorf("exit code %d, want %d; stderr %q lacks %q, or stdout lacks %q:\n%s", ExitCode(err), test.code, stderr, test.stderr, test.stdout, stdout)
			}
		})
	}
}

// TestDraftInterrupted: who interrupts the command is not told to wait for longer.
func TestDraftInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	url := reviewer(t, func(*apiextensionsv1.ConversionResponse, *apiextensionsv1.ConversionRequest) { interrupt() })
	root, stderr := NewRootCommand(), bytes.Buffer{}
	root.SetErr(&stderr)
	root.SetArgs([]string{"draft", "-f", sampleFile("3-crd-both.yaml"), "--probe", url})
	err := root.ExecuteContext(ctx)
	if want := "Error: crontabs.example.com: ask " + url + ": interrupted\n"; ExitCode(err) != exitUnable || stderr.String() != want {
		t.Errorf("exit code %d, stderr %q, want %q", ExitCode(err), stderr.String(), want)
	}
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
			if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(stderr.String(), "test the policy: "+program+" "+want) {
				t.Errorf("%v; stderr %q lacks %q of %s", err, stderr.String(), want, program)
			}
		}
	}
}
