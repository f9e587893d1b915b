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
	"sync"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// process converts objects of one kind with the functions in the folder older.
type process struct {
	kind string
	mu   sync.Mutex
	in   *json.Encoder
	out  *json.Decoder
}

// older is the folder and the command of a module with older libraries.
const older = "older"

// startOlder builds and starts the command for a kind.
func startOlder(t *testing.T, kind string) *process {
	t.Helper()
	binary := filepath.Join(t.TempDir(), older)
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-C", older, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", older, err, output)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), binary) // the cleanup ends it
	in, err := command.StdinPipe()
	expect.NoError(t, err)
	out, err := command.StdoutPipe()
	expect.NoError(t, err)
	var problems bytes.Buffer
	command.Stderr = &problems
	expect.NoError(t, command.Start())
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), command.Wait()); err != nil {
			t.Errorf("%s: %v\n%s", older, err, &problems)
		}
	})
	return &process{kind: kind, in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

func (p *process) convert(object []byte, from, to string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.in.Encode(map[string]any{"kind": p.kind, "from": from, "to": to, "object": json.RawMessage(object)}); err != nil {
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
