// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// PreservedText writes the value of an annotation of preserved values, of which values
// has a text by their pointers; what is no object it leaves as it is.
func PreservedText(values string) string {
	read, err := parse([]byte(values), one)
	if err != nil || !read.isObject() {
		return values
	}
	h := &hop{}
	var p preserved
	var dropped entries
	for m := read.first; m != nil; m = m.next {
		e := entry{pointer: []byte(m.label()), value: m.text}
		switch e.pointer[0] {
		case '!':
			e.kind = anAbsence
		case '#':
			e.kind = anOrder
		case '@':
			for _, of := range []entryKind{aValue, anOrder} {
				if found := p.find(e.pointer[1:], of); found != nil {
					found.images = m.text
				}
			}
			continue
		case '&':
			for _, of := range []entryKind{aValue, anAbsence} {
				if found := p.find(e.pointer[1:], of); found != nil {
					found.anchor = m.text
				}
			}
			continue
		case '-':
			dropped = append(dropped, entry{pointer: e.pointer[1:]})
			continue
		}
		if e.kind != aValue {
			e.pointer = e.pointer[1:]
		}
		p.entries = append(p.entries, e)
	}
	return string(h.appendPreserved(p, dropped))
}
