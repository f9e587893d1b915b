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

// TestEveryKindOfRule: the API server counts it, and users find it where rules are told.
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

// TestKind: a rule has the name of its member, and one of a newer version has none.
func TestKind(t *testing.T) {
	if got := new(Rule).Kind(); got != "" {
		t.Errorf("a rule without a member is of the kind %q", got)
	}
	for rule, want := range map[*Rule]string{{Move: &MoveRule{}}: "move", {CEL: &CELRule{}}: "cel"} {
		if got := rule.Kind(); got != want {
			t.Errorf("the kind is %q, want %q", got, want)
		}
	}
}
