// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
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

// Right is one verb on one resource, or at one URL.
type Right struct {
	// Role is the kind and name of the role, such as ClusterRole/conversion-operator.
	Role string
	// On is the resource with its group, such as deployments.apps, or the URL.
	On   string
	Verb string
}

func (r Right) String() string { return r.Role + ": " + r.Verb + " " + r.On }

// Installed returns the sorted rights in the roles of a kustomization.
func Installed(root, kustomization string) ([]Right, error) {
	options := krusty.MakeDefaultOptions()
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, kustomization))
	if err != nil {
		return nil, err
	}
	var all []Right
	for _, object := range built.Resources() {
		kind := object.GetKind()
		if kind != "ClusterRole" && kind != "Role" {
			continue
		}
		text, err := object.AsYAML()
		if err != nil {
			return nil, err
		}
		role := rbacv1.ClusterRole{} // of which a Role is a part
		if err := yaml.Unmarshal(text, &role); err != nil {
			return nil, err
		}
		name := kind + "/" + role.Name
		if role.Namespace != "" {
			name = fmt.Sprintf("%s in %s", name, role.Namespace)
		}
		for _, rule := range role.Rules {
			all = append(all, expand(name, rule)...)
		}
	}
	slices.SortFunc(all, compare)
	return all, nil
}

func expand(role string, rule rbacv1.PolicyRule) []Right {
	on := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			on = append(on, of(resource, group))
		}
	}
	var rights []Right
	for _, each := range on {
		for _, verb := range rule.Verbs {
			rights = append(rights, Right{role, each, verb})
		}
	}
	return rights
}

// of returns a resource with its group.
func of(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.On, b.On), cmp.Compare(a.Verb, b.Verb))
}
