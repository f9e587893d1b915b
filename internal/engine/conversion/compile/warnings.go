// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// warnDifferences names the fields that both versions have with different schemas.
func (c *compiler) warnDifferences() {
	if len(c.differences) > 0 {
		c.warn("not copied between %s and %s, each version keeps its own: %s: write a rule where one can be made of the other",
			c.root().spoke.version, c.root().hub.version, few(c.differences))
	}
}

// warnListsWithoutKeys names the lists without keys whose elements have preserved fields. An
// element that a client edits at the other version is no longer recognised.
func (c *compiler) warnListsWithoutKeys(leaves []FieldVerdict) {
	byList := map[string][]string{}
	for _, leaf := range leaves {
		if leaf.Owner != OwnerPreserved {
			continue
		}
		path, err := conversion.ParsePath(leaf.Root)
		if err != nil {
			continue
		}
		if list := listWithoutKeys(c.locate(path, leaf.Version != leaf.Spoke)); list != "" {
			byList[list] = append(byList[list], leaf.Version+":"+leaf.Root)
		}
	}
	for _, list := range slices.Sorted(maps.Keys(byList)) {
		c.warn("the elements of %s have no keys: what is preserved of one (%s) is lost once that element is edited in the other version: give the list x-kubernetes-list-type: map and keys, in both versions",
			list, few(byList[list]))
	}
}

// listWithoutKeys returns the first list on a path whose elements are paired and have no keys. It
// is empty if there is none.
func listWithoutKeys(at spot) string {
	for _, elements := range at.lists() {
		spoke, hub := elements.collection()
		hasKey := len(elements.path) == 0 && elements.in.collection.Key != ""
		if !hasKey && spoke != nil && hub != nil && spoke.Items != nil && hub.Items != nil && sharedKeys(elements, spoke, hub) == nil {
			return withoutEach(elements.shown(true)).String()
		}
	}
	return ""
}
