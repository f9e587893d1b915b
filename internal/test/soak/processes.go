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

// target are processes of the cluster. The program runs in the cluster's PID
// namespace, so that it sees those of pods too, and none of another cluster.
type target struct {
	name string
	// words are how the command line begins, without the folder of the program.
	words []string
	// one tells that it is one of several processes, the youngest.
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
	{name: "all migrations", words: []string{operator, "migrate"}},
}

// processNames are the details of the kinds that concern processes.
func processNames(*subject) []string {
	var names []string
	for _, t := range targets {
		names = append(names, t.name)
	}
	return names
}

// processNamed finds the processes of a target that run now; there may be none.
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

// matches compares a command line as /proc has it: words that end with a zero byte.
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

// signalAll sends a signal. A process that has ended needs none.
func signalAll(pids []int, signal unix.Signal) error {
	var failed []error
	for _, pid := range pids {
		if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = append(failed, fmt.Errorf("signal %d to process %d: %w", signal, pid, err))
		}
	}
	return errors.Join(failed...)
}
