// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
)

// Unused are the rights that nobody used and that have no proof either, sorted.
func (l *Log) Unused(roles []Role) []Right {
	var unused []Right
	for _, role := range roles {
		for _, reason := range role.Rules {
			if reason.Proof != "" {
				continue
			}
			for _, verb := range reason.Verbs {
				if right := (Right{role.Role, reason.On, verb}); !l.used(right) {
					unused = append(unused, right)
				}
			}
		}
	}
	slices.SortFunc(unused, compare)
	return unused
}

// used reports whether somebody who has the right used it, where it holds.
func (l *Log) used(right Right) bool {
	account, made := strings.CutPrefix(right.Role, "<policy>-")
	_, namespace, namespaced := strings.Cut(right.Role, " in ")
	for use := range l.Used {
		switch {
		case use.Verb != right.Verb:
		case made && use.By != Account(account):
		case right.On == "<objects>" && isObject(use.On):
			return true
		case use.On != right.On:
		case namespaced && use.Namespace == namespace:
			return true
		case !namespaced && (made || use.Namespace != "conversion-system"):
			return true
		}
	}
	return false
}

// isObject reports whether it is of a kind that a CustomResourceDefinition defines:
// all of those that the stories convert.
func isObject(resource string) bool { return strings.HasSuffix(resource, ".example.com") }
