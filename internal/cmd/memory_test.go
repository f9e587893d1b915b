// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	cases := map[string]struct {
		text string
		want int64
	}{
		"a limit":  {"268435456\n", 241591905},
		"no limit": {"max\n", 0},
		"nothing":  {"", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "memory.max")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := memoryLimit(file); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
	if got := memoryLimit(filepath.Join(t.TempDir(), "missing")); got != 0 {
		t.Errorf("without the file, the limit is %d", got)
	}
}
