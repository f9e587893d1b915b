// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestEveryKindOfRule checks for each kind that the API server counts it and names it in its message, that it has cases, which
// the tests of all that a kind does try, and that users find it in the documentation.
func TestEveryKindOfRule(t *testing.T) {
	var kinds, counted []string
	for member := range reflect.TypeFor[Rule]().Fields() {
		kind, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		kinds, counted = append(kinds, kind), append(counted, "has(self."+kind+")")
	}
	marker := `rule="[` + strings.Join(counted, ", ") + `].filter(x, x).size() == 1",message="set exactly one of ` + strings.Join(kinds, ", ") + `"`
	expect.Contains(t, "rules_types.go, above Rule,", contentOf(t, "rules_types.go"), marker)
	cases := filepath.Join("..", "..", "internal", "test", "rulecases")
	for _, kind := range kinds {
		text := contentOf(t, filepath.Join(cases, kind+".yaml"))
		if kind != "use" { // it is other rules: TestGroups of package compile
			expect.Contains(t, kind+".yaml", text, "conversions:\n", "  objects:\n", "refused:\n", "preserves:\n", "admission:\n", "page:\n", "- "+kind+": {", "rule: {"+kind+": {")
		}
	}
	page := contentOf(t, filepath.Join("..", "docs", "writing-rules.md"))
	for _, kind := range kinds {
		expect.Contains(t, "writing-rules.md", page, "| [`"+kind+"`](#")
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	expect.NoError(t, err)
	return string(text)
}

// TestKind: a rule has the name of its member, and one of a newer version has none.
func TestKind(t *testing.T) {
	expect.Equal(t, "a rule without a member is of the kind", "", new(Rule).Kind())
	for rule, want := range map[*Rule]string{{Move: &MoveRule{}}: "move", {CEL: &CELRule{}}: "cel"} {
		expect.Equal(t, "the kind", want, rule.Kind())
	}
}

// TestPaths: each kind of rule has its paths, those of several fields in order, and gets new ones. A missing one stays
// missing.
func TestPaths(t *testing.T) {
	if spoke, hub := new(Rule).Paths(); spoke != nil || hub != nil {
		t.Errorf("a rule without a member has the paths %q and %q", spoke, hub)
	}
	for member := range reflect.TypeFor[Rule]().Fields() {
		rule := Rule{}
		value := reflect.New(member.Type.Elem())
		reflect.ValueOf(&rule).Elem().FieldByIndex(member.Index).Set(value)
		for _, side := range []string{"From", "To"} {
			switch paths := value.Elem().FieldByName(side).Addr().Interface().(type) {
			case *Path:
				*paths = Path("." + side)
			case *map[string]Path:
				*paths = map[string]Path{"a": Path("." + side + ".b"), "b": Path("." + side)}
			}
		}
		spoke, hub := rule.Paths()
		if len(spoke) == 0 || len(hub) == 0 || spoke[0] != ".From" || hub[0] != ".To" || len(spoke) > 1 && spoke[1] != ".From.b" {
			t.Errorf("a %s rule has the paths %q and %q", rule.Kind(), spoke, hub)
		}
		rule.ReplacePaths(func(path Path) Path { return ".spoke" + path }, func(path Path) Path { return ".hub" + path })
		spoke, hub = rule.Paths()
		if spoke[0] != ".spoke.From" || hub[0] != ".hub.To" || len(hub) > 1 && hub[1] != ".hub.To.b" {
			t.Errorf("a %s rule has the paths %q and %q, which were replaced", rule.Kind(), spoke, hub)
		}
	}
	drop := &Rule{Drop: &DropRule{From: ".a"}}
	drop.ReplacePaths(func(Path) Path { return ".b" }, func(Path) Path { return ".c" })
	if spoke, hub := drop.Paths(); len(spoke) != 1 || hub != nil || *drop.Drop != (DropRule{From: ".b"}) {
		t.Errorf("a drop rule of the spoke has the paths %q and %q, and is %+v", spoke, hub, drop.Drop)
	}
}
