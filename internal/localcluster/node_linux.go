// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelSettings are the values below /proc/sys that the kubelet requires. It would set them for
// the whole machine: kernel.panic, for example, would make a developer's machine reboot. So it sees
// files that already have these values. Source: setupKernelTunables in
// k8s.io/kubernetes/pkg/kubelet/cm.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// hardCoded are directories of the host that the kubelet and libcni use whatever their
// configuration. Each cluster gets empty ones.
var hardCoded = []string{"/var/lib/cni", "/var/lib/kubelet"}

// supervisorAttributes makes the supervisor of a full node process 1 of new namespaces.
func supervisorAttributes(controlPlaneOnly bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if !controlPlaneOnly {
		attributes.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID
	}
	return attributes
}

// componentAttributes makes a component die with the supervisor even without a PID namespace.
func componentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// mountNode sets up the mount namespace of the node, before any other process runs in it.
func (s spec) mountNode() error {
	// From here on, mounts do not reach the host.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	if err := mountEmpty("/run"); err != nil {
		return err
	}
	if err := mountOver(s.Dir, s.Home); err != nil {
		return err
	}
	// Pod logs go beside those of the components.
	if err := mount(s.home("log"), "/var/log", "", unix.MS_BIND); err != nil {
		return err
	}
	for _, dir := range hardCoded {
		if err := mountEmpty(dir); err != nil {
			return err
		}
	}
	return s.hideKernelSettings()
}

func mountEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV)
}

func mountOver(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return mount(source, target, "", unix.MS_BIND)
}

func (s spec) hideKernelSettings() error {
	for setting, value := range kernelSettings {
		file := s.home("kernel-settings", strings.ReplaceAll(setting, "/", "."))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, filepath.Join("/proc/sys", setting), "", unix.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr) error {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("cannot mount %s: %w", target, err)
	}
	return nil
}
