// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// openElements opens a list or map.
var openElements = &projection{each: &projection{}}

// wrapping is a Wrap with its field prepared.
type wrapping struct {
	*Wrap
	field name
}

// convert returns nil if the other side cannot express the value.
func (w *wrapping) convert(s *step, value *node, toHub bool) *node {
	switch wraps := toHub == w.Hub; {
	case w.Field == "" && wraps:
		list := s.newList()
		list.add(value)
		return list
	case w.Field == "":
		return w.first(s, value)
	case wraps:
		return w.objects(s, value)
	}
	return w.values(s, value)
}

// first returns the first element of a list.
func (w *wrapping) first(s *step, value *node) *node {
	list, err := s.parse(s.bytes(value), openElements)
	if err != nil || list.kind != array {
		return nil
	}
	return list.first
}

// objects puts every value of a list or map into an object.
func (w *wrapping) objects(s *step, value *node) *node {
	held, err := s.parse(s.bytes(value), openElements)
	if err != nil || held.kind == scalar {
		return nil
	}
	return s.replaceElements(held, func(element *node) *node {
		if element.isNull() {
			return nil
		}
		return s.enclosed(&w.field, element)
	})
}

// values takes the value out of every object of a list or map.
func (w *wrapping) values(s *step, value *node) *node {
	held, err := s.parse(s.bytes(value), openElementMembers)
	if err != nil || held.kind == scalar {
		return nil
	}
	return s.replaceElements(held, func(element *node) *node { return element.only(&w.field) })
}

// replaceElements replaces every element of a list, or every value of a map. It returns nil if one of
// them has no replacement.
func (s *step) replaceElements(held *node, replacement func(*node) *node) *node {
	made := s.node()
	made.kind, made.open = held.kind, true
	for element := held.first; element != nil; {
		next, key, escaped, named := element.next, element.key, element.escaped, element.fingerprint
		other := replacement(element)
		if other == nil {
			return nil
		}
		other.key, other.escaped, other.fingerprint, other.untouched = key, escaped, named, false
		made.add(other)
		element = next
	}
	return made
}

// enclosed returns an object with the value as its only member.
func (s *step) enclosed(field *name, value *node) *node {
	object := s.newObject()
	object.set(field, value)
	return object
}

// only returns the value of a field, nil if it is null, or n is not an object that has it.
func (n *node) only(field *name) *node {
	if !n.isObject() {
		return nil
	}
	value := n.get(field)
	if value == nil || value.isNull() {
		return nil
	}
	return value
}

// patch returns the objects of a list or map as they were preserved, as far as they still have the
// same value, or the same key in a map. Of several objects with the same value, the first comes
// first.
func (w *wrapping) patch(s *step, objects *node, preserved []byte) *node {
	known, err := s.parse(preserved, openElementMembers)
	if err != nil || known.kind != objects.kind {
		return objects
	}
	if known.kind == object {
		return w.patchMembers(s, objects, known)
	}
	unused := map[string][]*node{}
	for element := known.first; element != nil; element = element.next {
		if value := element.only(&w.field); value != nil {
			text := s.canonical(value)
			unused[text] = append(unused[text], element)
		}
	}
	return s.replaceElements(objects, func(element *node) *node {
		text := s.canonical(element.get(&w.field))
		same := unused[text]
		if len(same) == 0 {
			return element
		}
		unused[text] = same[1:]
		return same[0]
	})
}

func (w *wrapping) patchMembers(s *step, objects, known *node) *node {
	byName := map[string]*node{}
	for member := known.first; member != nil; member = member.next {
		if member.isObject() {
			byName[member.decodedName()] = member
		}
	}
	return s.replaceElements(objects, func(element *node) *node {
		same := byName[element.decodedName()]
		if same == nil {
			return element
		}
		same.set(&w.field, element.get(&w.field))
		return same
	})
}
