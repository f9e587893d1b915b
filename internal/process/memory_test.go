// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestMemoryLimit(t *testing.T) {
	cases := map[string]struct {
		text string
		want int64
	}{
		"a limit":  {"268435456\n", 214748364},
		"no limit": {"max\n", 0},
		"nothing":  {"", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "memory.max")
			expect.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			expect.Equal(t, "limit", tc.want, memoryLimit(file))
		})
	}
	expect.Equal(t, "without the file, the limit", 0, memoryLimit(filepath.Join(t.TempDir(), "missing")))
}
