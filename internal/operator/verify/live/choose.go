// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Choice is an object and the version at which to read it.
type Choice struct {
	Head    Head
	Version string
}

// Choose returns a sample of at most the given number of reads. Each object is read at the
// versions in which it may be stored, according to its managedFields, or at the fallback:
// an API server does not report in which version an object is stored. The sample has some
// of each version and namespace, alternately the oldest and the newest.
func Choose(heads []Head, group string, stored []string, fallback string, limit int) []Choice {
	sets := map[[2]string][]Choice{}
	for _, head := range heads {
		for _, version := range versionsOf(head, group, stored, fallback) {
			key := [2]string{version, head.Namespace}
			sets[key] = append(sets[key], Choice{head, version})
		}
	}
	keys := slices.SortedFunc(maps.Keys(sets), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0])) })
	for _, set := range sets {
		slices.SortStableFunc(set, func(a, b Choice) int { return a.Head.Created.Compare(b.Head.Created.Time) })
	}
	var chosen []Choice
	for oldest := true; len(chosen) < limit && len(sets) > 0; oldest = !oldest {
		for _, key := range keys {
			if set := sets[key]; len(set) > 0 && len(chosen) < limit {
				var next Choice
				next, sets[key] = take(set, oldest)
				chosen = append(chosen, next)
			}
		}
		maps.DeleteFunc(sets, func(_ [2]string, set []Choice) bool { return len(set) == 0 })
	}
	return chosen
}

// Brief returns the head with what Choose reads of it, which is little: managedFields may have thousands of
// entries.
func (h Head) Brief(group string, stored []string) Head {
	brief := Head{Namespace: h.Namespace, Name: h.Name, Created: h.Created}
	for _, version := range versionsOf(h, group, stored, "") {
		brief.Writes = append(brief.Writes, Write{APIVersion: group + "/" + version})
	}
	return brief
}

func take(set []Choice, oldest bool) (next Choice, rest []Choice) {
	if oldest {
		return set[0], set[1:]
	}
	return set[len(set)-1], set[:len(set)-1]
}

// versionsOf returns the versions at which an object was written, and may be stored.
func versionsOf(head Head, group string, stored []string, fallback string) []string {
	var versions []string
	for _, write := range head.Writes {
		version, ok := strings.CutPrefix(write.APIVersion, group+"/")
		if ok && slices.Contains(stored, version) && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	if len(versions) == 0 {
		return []string{fallback}
	}
	return versions
}
