// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conversion-operator/conversion-operator/internal/test/node"
)

// Up starts a cluster, and returns when pods can be created in it. It builds missing binaries first. The
// cluster outlives the calling program; Down stops it.
//
// It returns an error if the cluster already runs. If the start fails, everything is stopped, the error
// quotes the log of the failed component, and all logs stay in the cluster's directory until the next
// start.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	if !canPlayRoles {
		return nil, errNoRoles
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := thisHost().check(o); err != nil {
		return nil, err
	}
	if o.ProcessNodes > 0 {
		if err := errors.Join(node.CheckImages(o.Images), checkPorts()); err != nil {
			return nil, err
		}
	}
	if _, err := Build(ctx, o); err != nil {
		return nil, err
	}
	unlock, err := lockCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if running, err := Find(o); err == nil {
		return nil, fmt.Errorf("cluster %q is already up, with Kubernetes %s: stop it first, or use another name", o.Name, running.spec.KubernetesVersion)
	}
	if err := checkSpace(filepath.Dir(o.clusterDir()), clusterSpace); err != nil {
		return nil, err
	}
	c, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cluster %q did not start: %w", o.Name, err)
	}
	return c, nil
}

// clusterSpace is what a cluster needs for its data and logs. etcd alone allocates 64 MB, and panics
// without.
const clusterSpace = 200 << 20

// checkSpace returns an error if the file system of a directory has less space.
func checkSpace(dir string, needed uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("cannot read the free space of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < needed { //nolint:gosec // it is positive
		return fmt.Errorf("%s has %d MB of free space, and a cluster needs %d: free some, or set %s to another folder", dir, free>>20, needed>>20, CacheVariable)
	}
	return nil
}

// lockCluster prevents two commands from starting or stopping one cluster at the same time.
func lockCluster(ctx context.Context, o Options) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(o.clusterDir()), 0o700); err != nil {
		return nil, err
	}
	return lockFile(ctx, o.lockPath(), func() {
		_, _ = fmt.Fprintf(o.Progress, "waiting for another command that starts or stops cluster %q\n", o.Name)
	})
}

// start removes what an earlier cluster left, and starts a new one.
func start(ctx context.Context, o Options) (*Cluster, error) {
	begin := time.Now()
	if err := removeRemains(o); err != nil {
		return nil, err
	}
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	c, reports, err := startSupervisor(s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reports.Close() }()
	if err := awaitReady(ctx, reports, o.Progress); err != nil {
		return nil, errors.Join(err, c.supervisor.end(context.WithoutCancel(ctx), unix.SIGKILL))
	}
	_, _ = fmt.Fprintf(o.Progress, "cluster %q is up after %.1f s\n", o.Name, time.Since(begin).Seconds())
	return c, nil
}

// prepare writes the files of the cluster's directory.
func prepare(o Options) (spec, error) {
	runc, _ := exec.LookPath("runc") // checked before where it is needed
	s := newSpec(o, runc)
	if s.onLoopback() {
		if err := s.takePorts(); err != nil {
			return s, err
		}
	}
	for _, dir := range []string{"log", "pki", "cni", "processes"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o700); err != nil {
			return s, err
		}
	}
	if s.Audited {
		policy, err := os.ReadFile(o.AuditPolicy)
		if err != nil {
			return s, fmt.Errorf("reading the audit policy: %w", err)
		}
		if err := os.WriteFile(auditPolicy(s.Dir), policy, 0o600); err != nil {
			return s, err
		}
	}
	c, err := newCredentials(s.address())
	if err == nil && s.ProcessNodes > 0 {
		err = node.WriteEgress(s.home("processes"))
	}
	if err != nil {
		return s, err
	}
	return s, errors.Join(c.write(filepath.Join(s.Dir, "pki")), s.writeConfig(c), s.write())
}

// takePorts takes different free ports of the loopback interface: all listeners stay open until the last
// port is found.
func (s *spec) takePorts() error {
	for _, port := range []*int{&s.Port, &s.EtcdPort, &s.EtcdPeerPort} {
		listener, err := net.Listen("tcp", loopbackAddress+":0") //nolint:noctx // on loopback nothing is waited for
		if err != nil {
			return err
		}
		defer func() { _ = listener.Close() }()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// startSupervisor also returns the pipe on which the supervisor reports.
func startSupervisor(s spec) (*Cluster, *os.File, error) {
	log, err := os.Create(logFile(s.Dir, "supervisor"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	reports, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := &exec.Cmd{
		Path:        self,
		Args:        []string{supervisorName, s.Dir},
		Dir:         "/",
		Env:         s.environment(os.Environ()),
		Stdout:      log,
		Stderr:      log,
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: supervisorAttributes(!s.onLoopback()),
	}
	if err := cmd.Start(); err != nil {
		_ = reports.Close()
		return nil, nil, fmt.Errorf("cannot create the supervisor and its namespaces "+
			"(root in a container needs CAP_SYS_ADMIN): %w", err)
	}
	supervisor, err := identify(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // else it stays a zombie of this program
	c := &Cluster{spec: s, supervisor: supervisor}
	return c, reports, errors.Join(err, c.record())
}

// awaitReady prints the supervisor's progress until it is ready or fails.
func awaitReady(ctx context.Context, reports *os.File, progress io.Writer) error {
	defer context.AfterFunc(ctx, func() { _ = reports.Close() })()
	messages := json.NewDecoder(reports)
	for {
		var r report
		if err := messages.Decode(&r); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the supervisor ended without a report: %w", err)
		}
		switch {
		case r.Ready:
			return nil
		case r.Error != "":
			return errors.New(r.Error)
		}
		_, _ = fmt.Fprintln(progress, r.Progress)
	}
}
