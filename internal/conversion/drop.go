// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// drop takes away what is given up on the way to the other side.
func (h *hop) drop(scope *Scope, n *node) (dropped bool) {
	leaving, _ := ends(h, scope.DropSpoke, scope.DropHub)
	for _, path := range leaving {
		dropped = n.detach(path) != nil || dropped
	}
	return dropped
}

// dropAll drops in all of an element, before it is kept whole for other reasons.
func (h *hop) dropAll(scope *Scope, n *node) (dropped bool) {
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		elements := n.find(collection.Path)
		if elements == nil {
			continue
		}
		for _, member := range elements.members {
			dropped = h.dropAll(&collection.Scope, member.value) || dropped
		}
		for _, element := range elements.elements {
			dropped = h.dropAll(&collection.Scope, element) || dropped
		}
	}
	return h.drop(scope, n) || dropped
}
