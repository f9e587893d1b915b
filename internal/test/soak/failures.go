// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// targets are processes of the cluster, by the beginning of their command line without the folder of the
// program. "one" selects only the last that was started. With the nodes, all pods die.
var targets = map[string][]string{
	"etcd":                    {"etcd"},
	"kube-apiserver":          {"kube-apiserver"},
	"kube-controller-manager": {"kube-controller-manager"},
	"kube-scheduler":          {"kube-scheduler"},
	"the nodes":               {"localcluster-nodes"},
	"one manager":             {"conversion-operator", "manager"},
	"all managers":            {"conversion-operator", "manager"},
	"one converter":           {"conversion-operator", "serve"},
	"all converters":          {"conversion-operator", "serve"},
	"all migrations":          {"conversion-operator", "run-migration"},
}

// processesOf returns the running processes of a target, if any. Those of a cluster have its folder,
// which has the kubeconfig, in their command line or environment.
func processesOf(target string) []int {
	home := filepath.Dir(os.Getenv("KUBECONFIG"))
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, file := range files {
		line, err := os.ReadFile(file)
		environment, environmentErr := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if err != nil || environmentErr != nil || !matches(targets[target], home, line, environment) {
			continue // it has ended meanwhile, or belongs to another user
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	if strings.HasPrefix(target, "one ") && len(found) > 0 {
		found = found[len(found)-1:]
	}
	return found
}

// matches compares with a command line and an environment of /proc, in which every word ends with a zero
// byte.
func matches(want []string, home string, line, environment []byte) bool {
	words := strings.Split(string(line), "\x00")
	words[0] = filepath.Base(words[0])
	return len(words) > len(want) && slices.Equal(words[:len(want)], want) &&
		(bytes.Contains(line, []byte(home)) || bytes.Contains(environment, []byte(home)))
}

// signalAll sends a signal, and ignores processes that have ended.
func signalAll(pids []int, signal syscall.Signal) error {
	var failed []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			failed = append(failed, fmt.Errorf("signal %d to process %d: %w", signal, pid, err))
		}
	}
	return errors.Join(failed...)
}

// killProcesses kills processes. Whatever started them restarts them.
func (p *player) killProcesses(_ context.Context, s Step) error {
	return signalAll(processesOf(s.Detail), syscall.SIGKILL)
}

// stopProcesses suspends processes for some seconds.
func (p *player) stopProcesses(ctx context.Context, s Step) error {
	pids := processesOf(s.Detail)
	err := signalAll(pids, syscall.SIGSTOP)
	return errors.Join(err, wait(ctx, time.Duration(s.Seconds)*time.Second), signalAll(pids, syscall.SIGCONT))
}

// fillDisk makes etcd refuse writes for some seconds.
func (p *player) fillDisk(ctx context.Context, s Step) error {
	setFull := func(ctx context.Context, full bool) error {
		return p.eventually(ctx, "etcd's alarm changes", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			return etcd.Client(os.Getenv(scenarios.EndpointVariable)).SetFull(ctx, full)
		})
	}
	if err := setFull(ctx, true); err != nil {
		return err
	}
	err := wait(ctx, time.Duration(s.Seconds)*time.Second)
	return errors.Join(err, setFull(context.WithoutCancel(ctx), false))
}
