// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeNeedsAPlan(t *testing.T) {
	directory := t.TempDir()
	missing, broken := filepath.Join(directory, "missing.json"), filepath.Join(directory, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ plan, want string }{
		"missing": {missing, "reading the plan: open " + missing + ": no such file or directory"},
		"broken":  {broken, "loading the plan " + broken + ": "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := run("serve", "--plan="+tc.plan, "--certificates="+directory)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error is %v, want %s", err, tc.want)
			}
		})
	}
}
