// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"strings"
)

// Tables are for api/docs/rights.md: one for each role.
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
