// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// names are the fields of a value that get another name. Both paths lead there from the value, from with
// the names before, to with those after the change. [*] stands for all elements.
type names []renaming

type renaming struct {
	from, to path
	// inElement is true for a field of a list's element.
	inElement bool
}

// namesOf returns the names that a spoke gets at the hub, and those that it gets back.
func namesOf(fields []renamed) (toHub, toSpoke names) {
	for _, r := range fields {
		toHub = append(toHub, renaming{r.Spoke, r.Hub, r.InElement})
		toSpoke = append(toSpoke, renaming{r.Hub, r.Spoke, r.InElement})
	}
	return toHub, toSpoke
}

// of returns the new name of a member.
func (n names) of(member string) string {
	for _, r := range n {
		if len(r.from) == 1 && r.from[0] == member {
			return r.to[0]
		}
	}
	return member
}

// in returns the names in a member or an element.
func (n names) in(member string) names {
	var inside names
	for _, r := range n {
		if len(r.from) > 1 && (r.from[0] == member || r.from[0] == "[*]") {
			inside = append(inside, renaming{r.from[1:], r.to[1:], r.inElement})
		}
	}
	return inside
}

// path returns a path with new names.
func (n names) path(at path) path {
	if len(at) == 0 {
		return nil
	}
	return append(path{n.of(at[0])}, n.in(at[0]).path(at[1:])...)
}

// at returns the names in the value at a path.
func (n names) at(of path) names {
	for _, member := range of {
		n = n.in(member)
	}
	return n
}

// value returns a value with new names.
func (n names) value(of any) any {
	switch of := of.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, member := range of {
			object[n.of(name)] = n.in(name).value(member)
		}
		return object
	case []any:
		list := []any{}
		for _, element := range of {
			list = append(list, n.in("[*]").value(element))
		}
		return list
	}
	return of
}

// entries returns preserved data with new names.
func (n names) entries(p *preserved) *preserved {
	if len(n) == 0 {
		return p
	}
	renamed := *p
	renamed.entries = map[entryKey]*entry{}
	for key, e := range p.entries {
		if !strings.HasPrefix(key.pointer, "/") {
			renamed.entries[key] = e
			continue
		}
		pointer, inside := n.pointer(key.pointer)
		with := *e
		if key.kind == aValue || key.kind == anExcluded {
			with.value = inside.value(e.value)
		}
		renamed.entries[entryKey{pointer, key.kind}] = &with
	}
	return &renamed
}

// pointer returns a pointer with new names, and the names in its place.
func (n names) pointer(of string) (renamed string, inside names) {
	for _, segment := range segments(of) {
		name, member := segment, unescapes.Replace(segment)
		if n.hasElements() {
			if strings.HasPrefix(segment, "[") && strings.HasSuffix(segment, "]") {
				name = n.in("[*]").selector(segment)
			}
		} else {
			name = escapes.Replace(n.of(member))
		}
		renamed, n = renamed+"/"+name, n.in(member)
	}
	return renamed, n
}

func (n names) hasElements() bool {
	return slices.ContainsFunc(n, func(r renaming) bool { return r.from[0] == "[*]" })
}

// selector returns the selector of an element with new names of its keys.
func (n names) selector(of string) string {
	parts := selectorParts(of)
	for i, part := range parts {
		key, value, found := strings.Cut(part, "=")
		member := unescapes.Replace(key)
		if found && slices.ContainsFunc(n, func(r renaming) bool { return len(r.from) == 1 && r.inElement && r.from[0] == member }) {
			parts[i] = escapes.Replace(n.of(member)) + "=" + value
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// shape returns the names in the form of package shape.
func (n names) shape() *shape.Names {
	if len(n) == 0 {
		return nil
	}
	result := &shape.Names{Of: map[string]string{}, In: map[string]*shape.Names{}}
	for _, r := range n {
		first := r.from[0]
		switch {
		case len(r.from) == 1:
			result.Of[first] = r.to[0]
		case first != "[*]" && result.In[first] == nil:
			result.In[first] = n.in(first).shape()
		case first == "[*]" && result.Each == nil:
			result.Each = n.in(first).shape()
		}
	}
	return result
}
