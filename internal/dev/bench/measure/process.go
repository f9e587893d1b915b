// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what the processes of one program use. Memory is in MiB.
type Usage struct {
	Processes int
	// Resident is the memory of the largest one in RAM now, Peak its maximum.
	Resident, Peak float64
	// Anonymous is the part of Resident without pages of files, such as the binary's.
	Anonymous float64
	// CPU is the processor time of all of them, with a resolution of 10 ms.
	CPU time.Duration
}

// UsageOf reads what the children of this process use that run a program: the name of its file, with
// its subcommand if it has one, such as "conversion-operator manager". It returns an error if there is
// none, and on other systems than Linux.
func UsageOf(program string) (u Usage, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return u, err
	}
	const mebibyte = 1 << 20
	for _, process := range all {
		stat, err := process.Stat()
		if err != nil || stat.PPID != os.Getpid() || programOf(process) != program {
			continue
		}
		status, err := process.NewStatus()
		if err != nil {
			continue // it has ended
		}
		u.Processes++
		u.Peak = max(u.Peak, float64(status.VmHWM)/mebibyte)
		if resident := float64(status.VmRSS) / mebibyte; resident > u.Resident {
			u.Resident, u.Anonymous = resident, float64(status.RssAnon)/mebibyte
		}
		u.CPU += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	if u.Processes == 0 {
		return u, fmt.Errorf("no process runs %s", program)
	}
	return u, nil
}

func programOf(process procfs.Proc) string {
	args, err := process.CmdLine()
	if err != nil || len(args) == 0 {
		return "" // it has ended
	}
	name := filepath.Base(args[0])
	if len(args) > 1 && args[1] != "" && args[1][0] != '-' {
		name += " " + args[1]
	}
	return name
}
