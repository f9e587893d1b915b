// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
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
	command := exec.CommandContext(t.Context(), binary)
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

// MarshalJSON returns the object as the project's Go type writes it.
func (r *remote) MarshalJSON() ([]byte, error) { return r.text, nil }

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
	p := project{
		sample:  "opentelemetry-collectors",
		module:  "github.com/open-telemetry/opentelemetry-operator",
		at:      "opentelemetry",
		crd:     "config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml",
		spoke:   collector.version("v1alpha1"),
		hub:     collector.version("v1beta1"),
		toHub:   convertRemote,
		fromHub: convertRemote,
		examples: map[string][]any{
			"v1alpha1:.spec.config": {
				"receivers:\n  otlp:\n    protocols:\n      grpc: {} # why\nexporters:\n  debug: {}\nservice:\n  pipelines:\n    traces: {receivers: [otlp], exporters: [debug]}\n",
				"exporters:\n  debug: {}\nreceivers: {}\nservice:\n  pipelines: {}\n",
				"", "receivers: ]", "receivers: {}\nother: 1\n",
			},
			"v1beta1:.spec.config.receivers": {map[string]any{"otlp": map[string]any{"protocols": map[string]any{"grpc": nil}}}, map[string]any{}},
		},
	}
	p.check(t)
}
