// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	memory, err := MemoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if memory.Resident <= 0 || memory.Anonymous <= 0 || memory.Anonymous > memory.Resident || memory.Peak < memory.Resident/2 {
		t.Errorf("unlikely: %+v", memory)
	}
	before, err := CPUTimeOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	after := before
	for end := before + 3*clockTick; after < end; {
		work := time.Now()
		for time.Since(work) < clockTick/10 {
		}
		if after, err = CPUTimeOf(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := MemoryOf(-1); err == nil {
		t.Error("a process that is not there has memory")
	}
	if _, err := CPUTimeOf(-1); err == nil {
		t.Error("a process that is not there has used CPU time")
	}
}
