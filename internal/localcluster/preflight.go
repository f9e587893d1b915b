// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// host has the properties of the machine that a start depends on.
type host struct {
	os        string
	uid       int
	mountinfo string
	lookPath  func(string) (string, error)
}

func thisHost() host {
	// Without /proc there are no control groups either, which check reports.
	mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
	return host{os: runtime.GOOS, uid: os.Geteuid(), mountinfo: string(mountinfo), lookPath: exec.LookPath}
}

// check returns an error, with a remedy, for a host on which the cluster cannot start.
func (h host) check(o Options) error {
	if h.os != "linux" {
		return fmt.Errorf("the local cluster needs Linux and this is %s: "+
			"use another cluster, such as kind, or a Linux machine", h.os)
	}
	if o.ControlPlaneOnly {
		return nil
	}
	if h.uid != 0 {
		return errors.New("a full node needs root: run this as root, " +
			"or start nodes that run pods as processes (--process-nodes)")
	}
	if missing := h.missing("runc", "ip"); len(missing) > 0 {
		return fmt.Errorf("not on PATH: %s: install runc and iproute2: "+
			"apt-get install -y runc iproute2, or run make deps", strings.Join(missing, ", "))
	}
	if len(cgroupMounts(h.mountinfo)) == 0 {
		return errors.New("control groups are not mounted: a full node needs them at /sys/fs/cgroup " +
			"(in a container: run it privileged)")
	}
	if strings.HasPrefix(o.CacheDir+"/", "/run/") {
		return fmt.Errorf("the cache %s cannot be below /run, which a full node replaces by its own: set %s",
			o.CacheDir, CacheVariable)
	}
	return nil
}

func (h host) missing(programs ...string) []string {
	var missing []string
	for _, program := range programs {
		if _, err := h.lookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	return missing
}
