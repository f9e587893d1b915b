// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// process is a measured process. It ends with its context.
type process struct {
	command *exec.Cmd
	log     bytes.Buffer
	// ended has the error of its end, and is closed.
	ended chan error
}

func startProcess(ctx context.Context, kubeconfig, binary string, args ...string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, binary, args...), ended: make(chan error, 1)}
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.ended <- p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// wait waits for the end of the process, whose context has ended.
func (p *process) wait() { <-p.ended } //nolint:errcheck // it was killed

// rest waits for span, and returns the memory at the end and the CPU time per minute.
func (p *process) rest(ctx context.Context, span time.Duration) (measure.Memory, time.Duration, error) {
	before, err := measure.CPUTimeOf(p.command.Process.Pid)
	if err != nil {
		return measure.Memory{}, 0, err
	}
	select {
	case err := <-p.ended:
		return measure.Memory{}, 0, fmt.Errorf("%s ended: %w; it says: %s", p.command.Path, err, lastOf(p.log.Bytes()))
	case <-ctx.Done():
		return measure.Memory{}, 0, ctx.Err()
	case <-time.After(span):
	}
	after, err := measure.CPUTimeOf(p.command.Process.Pid)
	if err != nil {
		return measure.Memory{}, 0, err
	}
	memory, err := measure.MemoryOf(p.command.Process.Pid)
	return memory, time.Duration(float64(after-before) * float64(time.Minute) / float64(span)), err
}

func lastOf(log []byte) []byte {
	const most = 4 << 10
	return log[max(0, len(log)-most):]
}
