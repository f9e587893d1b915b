// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// target selects processes of the cluster. This program runs in the PID namespace of the cluster,
// and sees the processes in its pods too, but none of another cluster.
type target struct {
	name string
	// words are the beginning of the command line, without the folder of the program.
	words []string
	// one selects only the youngest of several processes.
	one bool
}

const operator = "conversion-operator"

var targets = []target{
	{name: "etcd", words: []string{"etcd"}},
	{name: "kube-apiserver", words: []string{"kube-apiserver"}},
	{name: "kube-controller-manager", words: []string{"kube-controller-manager"}},
	{name: "kube-scheduler", words: []string{"kube-scheduler"}},
	{name: "kubelet", words: []string{"kubelet"}},
	{name: "containerd", words: []string{"containerd"}},
	{name: "one manager", words: []string{operator, "manager"}, one: true},
	{name: "all managers", words: []string{operator, "manager"}},
	{name: "one converter", words: []string{operator, "serve"}, one: true},
	{name: "all converters", words: []string{operator, "serve"}},
	{name: "all migrations", words: []string{operator, "run-migration"}},
}

// processNames are the variants of kinds that affect processes.
func processNames(*subject) []string {
	var names []string
	for _, t := range targets {
		names = append(names, t.name)
	}
	return names
}

// processNamed returns the running processes of a target, if any.
func processNamed(name string) []int {
	t := targets[slices.IndexFunc(targets, func(t target) bool { return t.name == name })]
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !t.matches(line) {
			continue // it has ended meanwhile
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	if t.one && len(found) > 0 {
		found = found[len(found)-1:]
	}
	return found
}

// matches compares with a command line of /proc, in which every word ends with a zero byte.
func (t target) matches(line []byte) bool {
	words := bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0})
	if len(words) < len(t.words) {
		return false
	}
	for i, want := range t.words {
		got := string(words[i])
		if i == 0 {
			got = filepath.Base(got)
		}
		if got != want {
			return false
		}
	}
	return true
}

// signalAll sends a signal, and ignores processes that have ended.
func signalAll(pids []int, signal unix.Signal) error {
	var failed []error
	for _, pid := range pids {
		if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = append(failed, fmt.Errorf("signal %d to process %d: %w", signal, pid, err))
		}
	}
	return errors.Join(failed...)
}
