// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestEveryComponentIsDocumented: each has a row in the table of installing.md, which
// says, too, whether there is an overlay of it.
func TestEveryComponentIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(config, "..", "api", "docs", "installing.md"))
	expect.NoError(t, err)
	components, err := os.ReadDir(filepath.Join(config, "components"))
	expect.NoError(t, err)
	for _, component := range components {
		overlay := ""
		if _, err := os.Stat(filepath.Join(config, "overlays", component.Name())); err == nil {
			overlay = "yes "
		}
		if row := "| `" + component.Name() + "` | " + overlay + "| "; !strings.Contains(string(page), "\n"+row) {
			t.Errorf("api/docs/installing.md has no row that begins with %s", row)
		}
	}
}
