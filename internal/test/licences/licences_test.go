// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

//go:embed allowed.txt
var allowed string

// TestLicences: each module has a licence, and only licences that are allowed.
func TestLicences(t *testing.T) {
	may := allowedLicences()
	modules, err := Linked(t.Context(), "../../..", "linux")
	expect.NoError(t, err)
	if len(modules) < 40 {
		t.Fatalf("%d modules are linked into the binary: %v", len(modules), modules)
	}
	used := map[string]bool{}
	for module, directory := range modules {
		found, err := In(directory)
		if err != nil {
			t.Errorf("%s: %v", module, err)
		}
		if len(found) == 0 {
			t.Errorf("%s has no licence in %s", module, directory)
		}
		for _, licence := range found {
			if used[licence] = true; !may[licence] {
				t.Errorf("%s has the licence %s, which allowed.txt does not allow", module, licence)
			}
		}
	}
	for licence := range may {
		if !used[licence] {
			t.Errorf("allowed.txt allows %s, which nothing has", licence)
		}
	}
	t.Logf("%d modules: %v", len(modules), slices.Sorted(maps.Keys(used)))
}

func allowedLicences() map[string]bool {
	may := map[string]bool{}
	for line := range strings.Lines(allowed) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			may[line] = true
		}
	}
	return may
}
