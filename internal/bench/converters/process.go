// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
	"github.com/conversion-operator/conversion-operator/internal/bench/pod"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// idleTime is the time before the memory of an idle process is read.
const idleTime = time.Second

// idle is the measurement of an idle converter process.
type idle struct {
	// ready is the time from the start to the first successful readiness check.
	ready  time.Duration
	memory measure.Memory
}

// serve starts a converter as in a pod, waits until it is ready, measures and stops it.
func serve(ctx context.Context, binary string, plan []byte) (idle, error) {
	dir, err := os.MkdirTemp("", "conversion-operator-bench-")
	if err != nil {
		return idle{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := store(dir, plan); err != nil {
		return idle{}, err
	}
	if _, err := pod.Certify(dir); err != nil {
		return idle{}, err
	}
	process, err := pod.Start(ctx, serveOptions(binary, dir))
	if err != nil {
		return idle{}, err
	}
	defer process.Stop()
	select {
	case <-ctx.Done():
		return idle{}, ctx.Err()
	case <-time.After(idleTime):
	}
	memory, err := process.Memory()
	return idle{ready: process.Started, memory: memory}, err
}

// serveOptions are those of a converter pod that mounts one directory for all.
func serveOptions(binary, dir string, args ...string) pod.Options {
	args = append([]string{"serve", "--drain=0s", "--metrics-bind-address=0", "--rulesets=" + dir}, args...)
	return pod.Options{Binary: binary, Args: args, Certificates: dir}
}

// store writes a ruleset to a directory, as a pod mounts it.
func store(dir string, ruleset []byte) error {
	name := conversion.StoredName("bench", conversion.HashOf(ruleset))
	return os.WriteFile(filepath.Join(dir, name), conversion.Store(ruleset), 0o600)
}
