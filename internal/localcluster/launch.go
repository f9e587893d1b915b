// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// launch starts a program that writes to the log of that name.
func (v *supervisor) launch(logName string, cmd *exec.Cmd) (<-chan unix.WaitStatus, error) {
	log, err := os.OpenFile(logFile(v.spec.Dir, logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = v.spec.Home
	cmd.SysProcAttr = componentAttributes()
	exited, err := v.processes.start(cmd)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", logName, err)
	}
	return exited, nil
}

// environment returns the environment of programs in the cluster: the cluster's binaries come first
// in PATH, and there is no proxy.
func (s spec) environment(base []string) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "PATH" || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	path := s.Bin
	for _, entry := range base {
		if hosts, found := strings.CutPrefix(entry, "PATH="); found {
			path = s.Bin + ":" + hosts
		}
	}
	return append(env,
		"PATH="+path,
		"KUBECONFIG="+kubeconfigFile(s.Dir),
		// kubectl caches discovery by address, and every cluster has the same address.
		"KUBECACHEDIR="+s.Dir+"/kubectl-cache",
		EtcdVariable+"="+s.etcdURL())
}

// logTail returns the end of a component's log.
func logTail(dir, logName string) string {
	path := logFile(dir, logName)
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	if len(content) == 0 {
		return fmt.Sprintf("its log %s is empty", path)
	}
	return fmt.Sprintf("the last lines of %s:\n%s", path, lastLines(string(content), 15))
}
