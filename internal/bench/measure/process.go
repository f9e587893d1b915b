// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory is the memory of a process, in MiB.
type Memory struct {
	// Resident is the memory in RAM now, Peak its maximum.
	Resident, Peak float64
	// Anonymous is the part of Resident without pages of files, such as the binary's, which
	// processes on one node share.
	Anonymous float64
}

// MemoryOf reads the memory of a process. It returns an error on other systems than Linux.
func MemoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("the memory of a process can be read on Linux only: %w", err)
	}
	mebibytes := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		number, _ := strings.CutSuffix(strings.TrimSpace(value), " kB")
		kilobytes, _ := strconv.ParseFloat(number, 64)
		mebibytes[name] = kilobytes / 1024
	}
	return Memory{Resident: mebibytes["VmRSS"], Peak: mebibytes["VmHWM"], Anonymous: mebibytes["RssAnon"]}, nil
}

// clockTick is the unit of proc_pid_stat(5); it is 100 Hz on all platforms of Go.
const clockTick = time.Second / 100

// CPUTimeOf returns the CPU time of a process since its start, in user and kernel mode, with a
// resolution of 10 ms. It returns an error on other systems than Linux.
func CPUTimeOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("the CPU time of a process can be read on Linux only: %w", err)
	}
	// The second field is a name in brackets with any characters; utime and stime are fields 14 and
	// 15.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const utime, stime = 11, 12
	var ticks int64
	for _, field := range []int{utime, stime} {
		if field >= len(fields) {
			return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
		}
		more, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += more
	}
	return time.Duration(ticks) * clockTick, nil
}
