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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

// The fields of the examples in the comparison with another operator.
const (
	strategiesSpoke = `spec: {type: object, properties: {storageSize: {type: string}, replicas: {type: object, properties: {count: {type: integer}, policy: {type: string}}}, zone: {type: object, properties: {name: {type: string}}},
		limits: {type: object, additionalProperties: {type: string}}, size: {type: string}, schemaVersion: {type: string}, debugMode: {type: boolean}, priority: {type: string}, cpuMillis: {type: integer}, timeoutSeconds: {type: integer},
		volumes: {type: array, items: {type: object, properties: {size: {type: string}, name: {type: string}, disks: {type: array, items: {type: object, properties: {size: {type: string}}}}}}}, contact: {type: string}, diskSize: {type: string},
		endpoints: {type: object, additionalProperties: {type: object, properties: {url: {type: string}}}}, memoryGB: {type: integer}, tagList: {type: string}, extraLabels: {type: object, additionalProperties: {type: string}}}}`
	strategiesHub = `spec: {type: object, properties: {storageGB: {type: string}, replicaCount: {type: integer}, zones: {type: array, items: {type: object, properties: {name: {type: string}}}}, cpuLimit: {type: string}, memoryLimit: {type: string},
		tier: {type: string}, description: {type: string}, size: {type: string}, priority: {type: integer}, cpuRequest: {type: string}, timeout: {type: string},
		volumes: {type: array, items: {type: object, properties: {sizeGB: {type: string}, label: {type: string}, disks: {type: array, items: {type: object, properties: {sizeGB: {type: string}}}}}}}, contactName: {type: string}, contactMail: {type: string},
		diskSizeValue: {type: integer}, diskSizeUnit: {type: string}, endpoints: {type: array, items: {type: object, properties: {name: {type: string}, url: {type: string}}}}, memoryMB: {type: integer},
		tags: {type: array, items: {type: string}}, extraLabels: {type: object, additionalProperties: {type: string}}}}`
)

// TestDocs converts the examples of the documentation there and back. Of the rules, each section is about a kind.
func TestDocs(t *testing.T) {
	t.Run("writing-rules", func(t *testing.T) {
		fields := map[string]rulecases.Versions{"": {
			V1: "spec: {type: object, properties: {node: {type: string}, ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, weight: {type: integer}}}}}}",
			V2: "spec: {type: object, properties: {ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}}}",
		}}
		for _, kind := range rulecases.All(t) {
			fields[kind.Name] = rulecases.Versions{V1: "spec: " + rulecases.List(objectOf(string(kind.Page.V1))), V2: "spec: " + rulecases.List(objectOf(string(kind.Page.V2)))}
		}
		checkExamples(t, "writing-rules.md", fields)
	})
	t.Run("strategies", func(t *testing.T) {
		checkExamples(t, "strategies.md", map[string]rulecases.Versions{"": {V1: strategiesSpoke, V2: strategiesHub}})
	})
}

// sectionsOf matches headings, to the colon behind a kind of rule, and examples.
var sectionsOf = regexp.MustCompile("(?sm)^##?# ([^:\n]*)|```yaml\n(.*?)```")

// checkExamples converts the examples of a page. Fields has those of both versions, by the kind of rule that a section is about,
// and those of all other sections.
func checkExamples(t *testing.T, page string, fields map[string]rulecases.Versions) {
	t.Helper()
	file := filepath.Join("..", "..", "..", "api", "docs", page)
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	updated := string(text)
	var c *conversion.Converter
	var first, firstVersion string
	examples := 0
	var of rulecases.Versions
	for _, block := range sectionsOf.FindAllStringSubmatch(string(text), -1) {
		code := block[2]
		head, _, _ := strings.Cut(code, "\n")
		switch version, oneWay := strings.CutSuffix(strings.TrimPrefix(head, "# "), ", one way"); {
		case block[1] != "":
			var isOfKind bool
			if of, isOfKind = fields[block[1]]; !isOfKind {
				of = fields[""]
			}
			c = docsConverter(t, "hub: v2\nspokes: [{version: v1}]", of)
		case strings.HasPrefix(code, "- "):
			c = docsConverter(t, "hub: v2\nspokes:\n- version: v1\n  rules:\n"+strings.ReplaceAll("  "+code, "\n", "\n  "), of)
		case strings.HasPrefix(code, "ruleGroups:"):
			c = docsConverter(t, "hub: v2\n"+code, of)
		case strings.HasPrefix(head, "# v") && first == "":
			first, firstVersion = docsObject(t, version, code), version
			if oneWay {
				firstVersion = ""
			}
		case strings.HasPrefix(head, "# v"):
			examples++
			second, there := docsObject(t, version, code), convert(t, c, first, version)
			if golden.Update() {
				updated = strings.Replace(updated, code, withPreservedOf(code, textsOf(t, there)), 1)
			} else {
				wantEqual(t, withDecodedAnnotations(t, second), withDecodedAnnotations(t, there), "%s\nat %s", first, version)
			}
			if firstVersion != "" {
				wantConverted(t, c, there, firstVersion, first)
			}
			first = ""
		}
	}
	if golden.Update() {
		expect.NoError(t, os.WriteFile(file, []byte(updated), 0o600))
	}
	if examples < 15 {
		t.Errorf("only %d examples were found", examples)
	}
}

// withPreservedOf returns an example with the preserved data of an object.
func withPreservedOf(code string, annotations map[string]string) string {
	return preservedLines.ReplaceAllStringFunc(code, func(line string) string {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		return strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))) + name + ": '" + strings.ReplaceAll(annotations[name], "'", "''") + "'"
	})
}

// preservedLines matches annotations with preserved data.
var preservedLines = regexp.MustCompile(`(?m)^ *conversion-operator\.io/.*$`)

func docsConverter(t *testing.T, rules string, of rulecases.Versions) *conversion.Converter {
	t.Helper()
	crd := widgets(t, map[string]string{"v1": strings.ReplaceAll(string(of.V1), "\t", ""), "v2": strings.ReplaceAll(string(of.V2), "\t", "")})
	return converterOf(t, compile.Compile(crd, from[v1alpha1.DeclarativeConverter](t, rules)))
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
	expect.NoError(t, err)
	return string(text)
}

// TestSamples converts objects of both samples there and back, byte for byte.
func TestSamples(t *testing.T) {
	for name, test := range map[string]struct{ sample, from, object, to, preserved, want string }{
		"five fields":           {"crontab-cronspec", "v1", `"spec":{"cronSpec":"*/5 9 * * 1","image":"i","replicas":1}`, "v2", "", `"spec":{"image":"i","replicas":1,"min":"*/5","hour":"9","dayOfMonth":"*","month":"*","dayOfWeek":"1"}`},
		"an owner is kept":      {"crontab-cronspec", "v1", `"spec":{"cronSpec":"* * * * *","owner":"data team"}`, "v2", `{"/spec/owner":"data team"}`, `"spec":{"min":"*","hour":"*","dayOfMonth":"*","month":"*","dayOfWeek":"*"}`},
		"a time zone is kept":   {"crontab-cronspec", "v2", `"spec":{"timeZone":"UTC"}`, "v1", `{"/spec/timeZone":"UTC"}`, `"spec":{}`},
		"no five words":         {"crontab-cronspec", "v1", `"spec":{"cronSpec":"@hourly"}`, "v2", `{"/spec/cronSpec":"@hourly"}`, `"spec":{}`},
		"some holes are absent": {"crontab-cronspec", "v2", `"spec":{"hour":"9"}`, "v1", "", `"spec":{"cronSpec":" 9   "}`},
		"a hole with a space":   {"crontab-cronspec", "v2", `"spec":{"hour":"9 10","min":"0"}`, "v1", `{"/spec/hour":"9 10","/spec/min":"0"}`, `"spec":{"cronSpec":"0 9 10   "}`},
		"fields at the root":    {"crontab-hostport", "v1beta1", `"hostPort":"localhost:1234","replicas":2`, "v1", "", `"replicas":2,"host":"localhost","port":"1234"`},
		"a port alone":          {"crontab-hostport", "v1beta1", `"hostPort":":80"`, "v1", "", `"port":"80"`},
		"a colon alone":         {"crontab-hostport", "v1beta1", `"hostPort":":"`, "v1", `{"/hostPort":":"}`, ``},
		"two colons":            {"crontab-hostport", "v1beta1", `"hostPort":"::"`, "v1", "", `"port":":"`},
		"a host with a colon":   {"crontab-hostport", "v1", `"host":"::1","port":"80"`, "v1beta1", `{"/host":"::1","/port":"80"}`, `"hostPort":"::1:80"`},
		"an empty host":         {"crontab-hostport", "v1", `"host":"","port":"80"`, "v1beta1", `{"/host":"","/port":"80"}`, `"hostPort":":80"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample(t, test.sample)
			cronTab := func(version, preserved, fields string) string {
				metadata := `{"name":"a"}`
				if preserved != "" {
					metadata = `{"name":"a","annotations":{"` + conversion.AnnotationName(c.Ruleset().CRD, test.from) + `":` + quoted(preservedText(preserved)) + `}}`
				}
				return `{"apiVersion":"` + c.Ruleset().Group + "/" + version + `","kind":"CronTab","metadata":` + metadata + strings.TrimSuffix(","+fields, ",") + "}"
			}
			object := cronTab(test.from, "", test.object)
			wantBytes(t, c, object, test.to, cronTab(test.to, test.preserved, test.want))
			wantConverted(t, c, convert(t, c, object, test.to), test.from, object)
		})
	}
}
