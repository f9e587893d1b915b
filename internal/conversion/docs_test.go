// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// The fields of the examples in the documentation.
const (
	docsSpoke = `spec: {type: object, properties: {image: {type: string}, tier: {type: string}, policy: {type: string}, address: {type: string}, node: {type: string}, timeout: {type: string},
		env: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}, minutes: {type: integer}, legacy: {type: string}, checks: {type: array, items: {type: string}},
		ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, label: {type: string}, weight: {type: integer}}}}}}`
	docsHub = `spec: {type: object, properties: {container: {type: object, properties: {image: {type: string}}}, concurrency: {type: string}, host: {type: string}, port: {type: integer},
		nodes: {type: array, items: {type: string}}, timeoutSeconds: {type: integer}, environment: {type: object, additionalProperties: {type: object, properties: {value: {type: string}}}}, mode: {type: string},
		seconds: {type: integer}, strategy: {type: object, properties: {checks: {type: array, items: {type: string}}, policy: {type: string}}}, ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, title: {type: string}}}}}}`
)

var codeBlocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestDocs converts the examples of the documentation there and back.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "docs", "writing-rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	var c *conversion.Converter
	var first, firstVersion string
	examples := 0
	for _, block := range codeBlocks.FindAllStringSubmatch(string(text), -1) {
		code := block[1]
		head, _, _ := strings.Cut(code, "\n")
		switch version, oneWay := strings.CutSuffix(strings.TrimPrefix(head, "# "), ", one way"); {
		case strings.HasPrefix(code, "- "):
			c = docsConverter(t, code)
		case strings.HasPrefix(head, "# v") && first == "":
			first, firstVersion = docsObject(t, version, code), version
			if oneWay {
				firstVersion = ""
			}
		case strings.HasPrefix(head, "# v"):
			examples++
			second := docsObject(t, version, code)
			if got := convert(t, c, first, version); !sameJSON(t, second, got) {
				t.Errorf("%s\nis\n%s\nand not\n%s", first, got, second)
			}
			if firstVersion != "" {
				if got := convert(t, c, second, firstVersion); !sameJSON(t, first, got) {
					t.Errorf("%s\nis\n%s\nand not\n%s", second, got, first)
				}
			}
			first = ""
		}
	}
	if examples < 15 {
		t.Errorf("only %d examples were found", examples)
	}
}

func docsConverter(t *testing.T, rules string) *conversion.Converter {
	t.Helper()
	crd := widgets(t, map[string]string{"v1": strings.ReplaceAll(docsSpoke, "\t", ""), "v2": strings.ReplaceAll(docsHub, "\t", "")})
	policy := &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{{Version: "v1", Rules: *from[[]v1alpha1.Rule](t, rules)}}}
	return converterOf(t, compile.Compile(crd, policy))
}

// docsObject is an example as the API server would send it.
func docsObject(t *testing.T, version, code string) string {
	t.Helper()
	object := *from[map[string]any](t, code)
	object["apiVersion"], object["kind"] = "example.com/"+version, "Widget"
	metadata, found := object["metadata"].(map[string]any)
	if !found {
		metadata = map[string]any{}
	}
	metadata["name"] = "example"
	object["metadata"] = metadata
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
