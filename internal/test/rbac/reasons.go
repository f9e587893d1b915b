// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed reasons.yaml
var reasons []byte

// Role is a role with a reason for each of its rights.
type Role struct {
	// Role is as in Right. Roles of a policy begin with <policy>.
	Role string `json:"role"`
	// Whose names the account, and the time for which it has the role.
	Whose string   `json:"whose"`
	Rules []Reason `json:"rules"`
}

// Reason is the purpose of some rights on one resource.
type Reason struct {
	On    string   `json:"resource"`
	Verbs []string `json:"verbs"`
	For   string   `json:"for"`
	// Proof names tests that need the rights, if no end-to-end story does.
	Proof string `json:"proof,omitempty"`
}

// Reasons returns all reasons, in reading order.
func Reasons() ([]Role, error) {
	var roles []Role
	if err := yaml.UnmarshalStrict(reasons, &roles); err != nil {
		return nil, fmt.Errorf("reasons.yaml: %w", err)
	}
	return roles, nil
}

// Explained returns the sorted rights that have a reason.
func (r Role) Explained() []Right {
	var rights []Right
	for _, reason := range r.Rules {
		for _, verb := range reason.Verbs {
			rights = append(rights, Right{r.Role, reason.On, verb})
		}
	}
	slices.SortFunc(rights, compare)
	return rights
}

// Tables returns the tables of api/docs/rights.md, one per role.
func Tables(roles []Role) string {
	var text strings.Builder
	for _, role := range roles {
		fmt.Fprintf(&text, "\n### %s\n\n%s\n\n| on | verbs | what for |\n| --- | --- | --- |\n", role.Role, role.Whose)
		for _, reason := range role.Rules {
			why := reason.For
			if reason.Proof != "" {
				why += " (" + reason.Proof + ")"
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s |\n", reason.On, strings.Join(reason.Verbs, ", "), why)
		}
	}
	text.WriteString("\n")
	return text.String()
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Tests returns the names of all tests below root, with any build tags.
func Tests(root string) (map[string]bool, error) {
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	return names, err
}
