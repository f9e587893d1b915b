// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
// its subcommand if it has one, such as "conversion-operator serve". It returns an error if there is
// none, and on other systems than Linux.
func UsageOf(program string) (u Usage, err error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return u, err
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread that has ended has none
		for pid := range strings.FieldsSeq(string(children)) {
			if programOf(pid) == program {
				u.add(pid)
			}
		}
	}
	if u.Processes == 0 {
		return u, fmt.Errorf("no process runs %s", program)
	}
	return u, nil
}

func programOf(pid string) string {
	line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // a process that has ended has none
	args := strings.Split(string(line), "\x00")
	name := filepath.Base(args[0])
	if len(args) > 1 && args[1] != "" && args[1][0] != '-' {
		name += " " + args[1]
	}
	return name
}

// add adds a process, unless it has ended.
func (u *Usage) add(pid string) {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	stat, err2 := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil || err2 != nil {
		return
	}
	memory := map[string]float64{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kibibytes, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		memory[name] = kibibytes / 1024
	}
	u.Processes++
	u.Peak = max(u.Peak, memory["VmHWM"])
	if memory["VmRSS"] > u.Resident {
		u.Resident, u.Anonymous = memory["VmRSS"], memory["RssAnon"]
	}
	// The second field is a name in brackets with any characters; utime and stime are fields 14 and 15, in
	// units of 10 ms on all platforms of Go: proc_pid_stat(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		u.CPU += time.Duration(ticks) * (time.Second / 100)
	}
}
