// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/document"
)

// process converts objects with the functions of a project that is a module of its own.
type process struct {
	mu  sync.Mutex
	in  *json.Encoder
	out *json.Decoder
}

// startProcess builds and starts the command in a folder.
func startProcess(t *testing.T, folder string) *process {
	t.Helper()
	binary := filepath.Join(t.TempDir(), folder)
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-C", folder, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", folder, err, output)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), binary) // the cleanup ends it
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	command.Stderr = &problems
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), command.Wait()); err != nil {
			t.Errorf("%s: %v\n%s", folder, err, &problems)
		}
	})
	return &process{in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

func (p *process) convert(object []byte, from, to string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.in.Encode(map[string]any{"from": from, "to": to, "object": json.RawMessage(object)}); err != nil {
		return nil, err
	}
	var answer struct {
		Object json.RawMessage
		Error  string
	}
	if err := p.out.Decode(&answer); errors.Is(err, io.EOF) {
		return nil, errors.New("the process has ended")
	} else if err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Object, nil
}

// remote is an object of a version in a process.
type remote struct {
	process *process
	version string
	text    []byte
}

// UnmarshalJSON reads the object by the project's Go type.
func (r *remote) UnmarshalJSON(text []byte) (err error) {
	r.text, err = r.process.convert(text, r.version, r.version)
	return err
}

// MarshalJSON returns the object as the project's Go type writes it. A configuration in YAML has one form,
// because both conversions write it in a form of their own.
func (r *remote) MarshalJSON() ([]byte, error) {
	object := decode(r.text)
	spec := asMap(asMap(object)["spec"])
	if text, isText := spec["config"].(string); isText {
		if value, ok := document.Read(document.YAML, []byte(text)); ok {
			normal, _ := document.Write(document.YAML, value)
			spec["config"] = string(normal)
		}
	}
	return json.Marshal(object)
}

func (p *process) version(name string) version {
	return version{name, func() any { return &remote{process: p, version: name} }}
}

func convertRemote(from, to any) (err error) {
	source, target := from.(*remote), to.(*remote)
	target.text, err = source.process.convert(source.text, source.version, target.version)
	return err
}

// TestOpenTelemetryCollector: the OpenTelemetry Operator's v1beta1.
func TestOpenTelemetryCollector(t *testing.T) {
	collector := startProcess(t, "opentelemetry")
	const (
		invalid  = "theirs writes an empty configuration for a text that is invalid or has another type, and the text is lost; ours preserves the text"
		filled   = "theirs adds what a configuration must have; ours adds nothing to what the user wrote"
		forgot   = "theirs forgets the field, in both directions, and it is lost; ours copies it"
		strategy = "theirs drops a strategy that it does not know; ours copies it"
		all      = "theirs writes a selector for all monitors also without a target allocator; ours only in objects that exist"
	)
	isEmpty := func(theirs, ours any) bool { return show(theirs) == "{}" && (ours == nil || ours == absent) }
	forgotten := func(theirs, ours any) bool { return theirs == absent && ours != absent }
	p := project{
		sample:  "opentelemetry-collectors",
		module:  "github.com/open-telemetry/opentelemetry-operator",
		at:      "opentelemetry",
		crd:     "config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml",
		spoke:   collector.version("v1alpha1"),
		hub:     collector.version("v1beta1"),
		toHub:   convertRemote,
		fromHub: convertRemote,
		differences: []difference{
			{"v1beta1", ".spec.config.receivers", isEmpty, invalid},
			{"v1beta1", ".spec.config.exporters", isEmpty, filled},
			{"v1beta1", ".spec.config.service.pipelines", isEmpty, filled},
			{"v1alpha1", ".spec.config", func(_, ours any) bool { return ours == absent }, "theirs writes an empty configuration for an object without a spec; ours adds nothing"},
			{"v1beta1", ".spec.serviceName", forgotten, forgot},
			{"v1alpha1", ".spec.serviceName", forgotten, forgot},
			{"v1beta1", ".spec.targetAllocator.filterStrategy", forgotten, strategy},
			{"v1beta1", ".spec.targetAllocator.prometheusCR.podMonitorSelector", isEmpty, all},
			{"v1beta1", ".spec.targetAllocator.prometheusCR.serviceMonitorSelector", isEmpty, all},
		},
		examples: map[string][]any{
			quantity: quantities,
			".spec.targetAllocator.prometheusCR.scrapeInterval":   {"30s", "1m0s"},
			".spec.targetAllocator.collectorNotReadyGracePeriod":  {"30s", "1m0s"},
			".spec.targetAllocator.collectorTargetReloadInterval": {"30s", "1m0s"},
			"v1alpha1:.spec.config":                               slices.Concat(slices.Repeat(collectorTexts, 6), noCollectorTexts),
			"v1beta1:.spec.config":                                collectorConfigs(),
		},
	}
	p.check(t)
}

// collectorTexts are configurations as users write them.
var collectorTexts = []any{
	`receivers:
  otlp:
    protocols:
      grpc: # the default port
      http: {endpoint: 0.0.0.0:4318}
processors: {batch: {timeout: 5s, send_batch_size: 10000}}
exporters: {debug: {}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [debug]}
`,
	`receivers: &none {}
exporters:
  otlp:
    tls: {insecure: true}
    headers: {"on": "yes", version: "1.10", code: 0x1F}
    ratio: 0.50
service:
  telemetry: {logs: {level: debug}, resource: *none}
  pipelines: {}
`,
	`exporters: {}
receivers: {}
service:
  extensions: [health_check]
  pipelines: {}
extensions:
  health_check: {}
`,
}

// noCollectorTexts lack what a configuration must have, or are none.
var noCollectorTexts = []any{
	"receivers: {}\n",
	"",
	"receivers: ]",
	"receivers: []",
	"receivers: {}\nreceivers: {}\n",
}

// collectorConfigs are the same as objects, with values of each type.
func collectorConfigs() []any {
	return []any{
		decode([]byte(`{"receivers":{"otlp":{"protocols":{"grpc":null,"http":{"endpoint":"0.0.0.0:4318"}}}},"exporters":{"debug":{}},"processors":{"batch":{"timeout":"5s"}},
			"service":{"pipelines":{"traces":{"receivers":["otlp"],"processors":["batch"],"exporters":["debug"]}}}}`)),
		decode([]byte(`{"receivers":{},"exporters":{"otlp":{"insecure":true,"ratio":0.5,"large":12345678901,"list":[1,"a",{"b":[]}],"script":"first\nsecond\n","on":"yes","version":"1.10"}},
			"connectors":{"forward":{}},"extensions":{"health_check":{}},"service":{"extensions":["health_check"],"telemetry":{"logs":{"level":"debug"}},"pipelines":{}}}`)),
		decode([]byte(`{"receivers":{},"exporters":{},"service":{"pipelines":{}}}`)),
	}
}
