// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestEveryKindOfRule: the CEL rule of Rule counts it, and it is documented.
func TestEveryKindOfRule(t *testing.T) {
	pages := map[string]string{
		"rules_types.go": "has(self.%)",
		filepath.Join("..", "docs", "writing-rules.md"): "| [`%`](#",
		filepath.Join("..", "..", "README.md"):          "`%`",
	}
	for path, as := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for member := range reflect.TypeFor[Rule]().Fields() {
			kind, _, _ := strings.Cut(member.Tag.Get("json"), ",")
			if want := strings.ReplaceAll(as, "%", kind); !strings.Contains(string(text), want) {
				t.Errorf("%s does not have %s", path, want)
			}
		}
	}
}
