// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/internal/form"
)

// Names gives members of a value, and of the values in it, other names. A nil Names changes none.
type Names struct {
	// Of has the new names of members by their names. No two members get the same name: a name
	// that one member gets is the name of another that gets a new one, too.
	Of map[string]string
	// Keys are the members of Of that may be keys, because the value is an element of a list.
	Keys map[string]bool
	// In changes names in a member, by the name of the member before the change.
	In map[string]*Names
	// Each changes names in every element of a list, or every value of a map. A value with Each
	// has neither Of nor In.
	Each *Names
}

// Name returns the new name of a member.
func (n *Names) Name(name string) string {
	if n != nil {
		if other, found := n.Of[name]; found {
			return other
		}
	}
	return name
}

// Member returns the names in a member, or in an element.
func (n *Names) Member(name string) *Names {
	if n == nil {
		return nil
	}
	if in, found := n.In[name]; found {
		return in
	}
	return n.Each
}

func (n *Names) rename(node *form.Node) {
	if n == nil || node == nil {
		return
	}
	members := map[string]*form.Node{}
	for name, member := range node.Properties {
		n.Member(name).rename(member)
		members[n.Name(name)] = member
	}
	if node.Properties != nil {
		node.Properties = members
	}
	n.Each.rename(node.Additional)
	n.Each.rename(node.Items)
	if node.Limits == nil {
		return
	}
	node.Required, node.ListKeys = n.All(node.Required), n.Each.All(node.ListKeys)
	node.Default = n.renameIn(node.Default)
	for i := range node.Enum {
		node.Enum[i] = n.renameIn(node.Enum[i])
	}
	for _, joined := range slices.Concat(node.AllOf, node.AnyOf, node.OneOf, []*form.Node{node.Not}) {
		n.rename(joined)
	}
}

// All returns the new names of several members.
func (n *Names) All(names []string) []string {
	if n == nil {
		return names
	}
	renamed := slices.Clone(names)
	for i := range renamed {
		renamed[i] = n.Name(renamed[i])
	}
	return renamed
}

// renameIn renames the members of a JSON value.
func (n *Names) renameIn(text json.RawMessage) json.RawMessage {
	value, err := decoded(text)
	if text == nil || err != nil {
		return text
	}
	renamed, err := json.Marshal(n.value(value))
	if err != nil {
		return text // cannot happen: the value comes from JSON
	}
	return renamed
}

func (n *Names) value(value any) any {
	switch value := value.(type) {
	case map[string]any:
		members := maps.Clone(value)
		clear(members)
		for name, member := range value {
			members[n.Name(name)] = n.Member(name).value(member)
		}
		return members
	case []any:
		for i := range value {
			value[i] = n.Member("").value(value[i])
		}
	}
	return value
}
