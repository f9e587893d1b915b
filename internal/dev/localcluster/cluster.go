// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// EtcdVariable names the environment variable with etcd's URL, for programs run by Command.
const EtcdVariable = "LOCALCLUSTER_ETCD"

// stopTimeout is the time for a supervisor to stop before it is killed.
const stopTimeout = 10 * time.Second

// Cluster is a running cluster.
type Cluster struct {
	spec       spec
	supervisor process
}

// ErrNotRunning is returned for a cluster that was never started, was stopped
// or has died.
var ErrNotRunning = errors.New("the cluster is not running")

// Find returns the running cluster of that name. Otherwise it returns an error that wraps
// ErrNotRunning, with the reason why the cluster ended, if known.
func Find(o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	dir := o.clusterDir()
	s, err := readSpec(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: there is no cluster %q: start it with up", ErrNotRunning, o.Name)
	}
	c := &Cluster{spec: s}
	data, err := os.ReadFile(supervisorFile(dir))
	if err == nil {
		err = json.Unmarshal(data, &c.supervisor)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: cluster %q did not start: %w", ErrNotRunning, o.Name, err)
	}
	if now, err := identify(c.supervisor.PID); err != nil || now != c.supervisor {
		return nil, fmt.Errorf("%w: cluster %q has ended; %s", ErrNotRunning, o.Name, logTail(dir, "supervisor"))
	}
	return c, nil
}

func supervisorFile(dir string) string { return filepath.Join(dir, "supervisor.json") }

// record writes the supervisor's identity to a file for later commands.
func (c *Cluster) record() error {
	data, err := json.Marshal(c.supervisor)
	if err != nil {
		return err
	}
	return os.WriteFile(supervisorFile(c.spec.Dir), data, 0o600)
}

// Kubeconfig returns the path of the administrator's kubeconfig. That of a full node works only
// inside the cluster: see Command.
func (c *Cluster) Kubeconfig() string { return kubeconfigFile(c.spec.Dir) }

// LogDir returns the directory of the logs: <component>.log and, on a full node,
// pods/<namespace>_<name>_<uid>/<container>/<n>.log.
func (c *Cluster) LogDir() string { return filepath.Join(c.spec.Dir, "log") }

// SupervisorPID returns the process whose end stops the cluster.
func (c *Cluster) SupervisorPID() int { return c.supervisor.PID }

// Command prepares a program to run inside the cluster's namespaces, or on the host with nodes of
// processes, with KUBECONFIG, $LOCALCLUSTER_ETCD, and a PATH that starts with the cluster's
// binaries. Killing the command kills the program, other signals are passed on, and the exit code
// is the program's, or 128 plus the number of the signal that killed it. Programs die with the
// cluster.
func (c *Cluster) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	line := append([]string{program}, args...)
	if !c.spec.onLoopback() {
		line = append([]string{enterName, strconv.Itoa(c.supervisor.PID), strconv.FormatUint(c.supervisor.Started, 10)}, line...)
	}
	cmd := exec.CommandContext(ctx, c.binary(program), args...)
	cmd.Env = c.spec.environment(os.Environ())
	if c.spec.onLoopback() {
		return cmd
	}
	cmd.Path, cmd.Args, cmd.Err = self, line, nil
	if !canPlayRoles {
		cmd.Err = errNoRoles
	}
	return cmd
}

// binary returns the path of the cluster's own program of that name, if it has one, because the
// PATH of the caller does not include the cluster's binaries.
func (c *Cluster) binary(name string) string {
	if path := filepath.Join(c.spec.Bin, name); filepath.Base(name) == name {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

// Down stops the cluster of that name, in any state, and removes its files, but for an empty lock
// file. It is no error if the cluster does not run.
func Down(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	unlock, err := lockCluster(ctx, o)
	if err != nil {
		return err
	}
	defer unlock()
	if c, err := Find(o); err == nil {
		if err := c.stop(ctx); err != nil {
			return err
		}
	}
	return removeRemains(o)
}

// stop ends the supervisor, and kills it after stopTimeout.
func (c *Cluster) stop(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := c.supervisor.end(patient, unix.SIGTERM)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = c.supervisor.end(ctx, unix.SIGKILL)
	}
	return err
}

// removeRemains removes what outlives the processes of a cluster.
func removeRemains(o Options) error {
	if err := removeCgroups(o.clusterDir(), cgroupRoot); err != nil {
		return err
	}
	return os.RemoveAll(o.clusterDir())
}
