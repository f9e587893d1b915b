// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path"
)

// Part selects blocks of one page.
type Part struct {
	// Page is the name in the folder of pages, or the path of another page.
	Page string
	// Under is a heading, or the name in play=NAME; empty for all blocks of the page.
	Under string
}

// scenes are the parts that a test runs in order, by the name of the scene.
var scenes = map[string][]Part{
	"getting started": {{Page: "getting-started.md"}},
	"retiring":        {{Page: "retiring.md"}, {"runbooks.md", "deprecated"}, {"runbooks.md", "audit-log"}},
	"migrating": {
		{"kubectl.md", "Install it"},
		{"migrating.md", "Before"},
		{"migrating.md", "During"},
		{"migrating.md", "When something fails"},
		{"kubectl.md", "status"},
		{"kubectl.md", "explain"},
		{"kubectl.md", "diff"},
		{"runbooks.md", "failed"},
		{"migrating.md", "Fix, and try again"},
		{"kubectl.md", "mended"},
		{"../../README.md", "What to watch"},
		{"migrating.md", "After"},
		{"migrating.md", "Rolling back"},
	},
	"mistakes":       {{"runbooks.md", "mistakes"}},
	"replacing":      {{"certificates.md", "selfManaged"}},
	"blocked":        {{"leaving.md", "Uninstall the operator"}, {"leaving.md", "blocked"}},
	"installing":     {{"installing.md", "In four ways"}},
	"downgrading":    {{"upgrading.md", "Downgrade"}},
	"upgrading":      {{"upgrading.md", "Upgrade"}},
	"keeping":        {{"gitops.md", "keep-conversion"}},
	"granting none":  {{"rights.md", "Who grants migrations their rights"}},
	"uninstalling":   {{"leaving.md", "Uninstall the operator"}, {"leaving.md", "nothing-converts"}, {"installing.md", "Remove"}},
	"removing":       {{"leaving.md", "nothing-converts"}, {"installing.md", "Remove"}},
	"all is well":    {{"auditing.md", "Auditing a cluster"}, {"commands.md", "conversion-operator audit"}},
	"problems found": {{"auditing.md", "An example"}},
	"dependents":     {{"dependents.md", "An example"}},
	"no dependents":  {{"commands.md", "conversion-operator dependents"}},
	"rules": {
		{"writing-rules.md", "Try rules before you apply them"},
		{Page: "drafting.md"},
		{Page: "rewriting.md"},
		{Page: "backups.md"},
		{Page: "report.md"},
		{"kubectl.md", "pipeline"},
		{"commands.md", "conversion-operator archive"},
		{"commands.md", "conversion-operator convert"},
		{"commands.md", "conversion-operator diff"},
		{"commands.md", "conversion-operator draft"},
		{"commands.md", "conversion-operator explain"},
		{"commands.md", "conversion-operator report"},
		{"commands.md", "conversion-operator rewrite"},
		{"commands.md", "conversion-operator verify"},
	},
	"a policy": {
		{"commands.md", "conversion-operator suspend"},
		{"commands.md", "conversion-operator resume"},
		{"commands.md", "conversion-operator trigger"},
	},
	"without the operator": {{Page: "migrating-without-operator.md"}},
	"a conflict":           {{"kubectl.md", "conflict"}},
}

func (p Part) path() string { return path.Join(Folder, p.Page) }

// Scene returns the parts of a scene, each as a page with its blocks.
func Scene(root, name string) ([]*Page, error) {
	parts, found := scenes[name]
	if !found {
		return nil, fmt.Errorf("there is no scene %q", name)
	}
	var played []*Page
	for _, part := range parts {
		page, err := Read(root, part.path())
		if err != nil {
			return nil, err
		}
		if part.Under != "" {
			page = page.Section(part.Under)
		}
		played = append(played, page)
	}
	return played, nil
}
