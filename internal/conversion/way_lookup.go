// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
)

// looksUp reports whether a way looks an entry up where the objects around its place
// are there. If it did not, they are gone, and what was preserved in them with them.
func (w *way) looksUp(pointer []byte, e *entry) bool {
	switch e.kind {
	case anAbsence:
		return w.fills(pointer) || w.looksInto(pointer, e)
	case anOrder:
		return w.exchangesTo(pointer, true) || w.looksInto(pointer, e)
	}
	return w.comes(pointer, e.value) || w.fills(pointer) || w.exchangesTo(pointer, false) || w.looksInto(pointer, e)
}

func (w *way) fills(pointer []byte) bool {
	return slices.ContainsFunc(w.defaults, func(d filling) bool { return !d.leaves && d.pointer == string(pointer) })
}

// defaultAt is the default rule of a field, nil where there is none: of the side that
// a way leaves, or of that to which it leads.
func (w *way) defaultAt(pointer []byte, leaves bool) *filling {
	for scope, rest := range w.scopesOf(pointer) {
		for i := range scope.defaults {
			if d := &scope.defaults[i]; d.leaves == leaves && d.pointer == string(rest) {
				return d
			}
		}
	}
	return nil
}

// ruleTo is the rule that computes a field, and the place of its scope; nil where no rule
// does.
func (w *way) ruleTo(pointer []byte) (scope string, rule *exchange) {
	for in, rest := range w.scopesOf(pointer) {
		for i := range in.exchanges {
			if slices.ContainsFunc(in.exchanges[i].to, func(f slot) bool { return f.pointer == string(rest) }) {
				return string(pointer[:len(pointer)-len(rest)]), &in.exchanges[i]
			}
		}
	}
	return "", nil
}

// scopesOf are the scopes in which a place may be, the outermost first, each with the
// pointer of the place in it: those of the elements around the place.
func (w *way) scopesOf(pointer []byte) iter.Seq2[*way, []byte] {
	return func(yield func(*way, []byte) bool) { w.visit(pointer, yield) }
}

func (w *way) visit(pointer []byte, yield func(*way, []byte) bool) (goesOn bool) {
	if w == nil {
		return true
	}
	if !yield(w, pointer) {
		return false
	}
	for i := range w.collections {
		c := &w.collections[i]
		if _, rest := c.inElement(pointer); rest != nil && !c.way.visit(rest, yield) {
			return false
		}
	}
	return true
}

func (w *way) exchangesTo(pointer []byte, order bool) bool {
	for i := range w.exchanges {
		e := &w.exchanges[i]
		for j := range e.to {
			if e.to[j].pointer == string(pointer) {
				return !order || e.index != nil && e.toHub == e.index.Hub
			}
		}
	}
	return false
}

// comes reports whether a way restores a field that the other side lacks, or an
// object that both sides have and that has nothing in it.
func (w *way) comes(pointer, value []byte) bool {
	for i := range w.coming {
		c := &w.coming[i]
		if c.known == nil {
			if c.pointer == string(pointer) && c.comesAs(value) {
				return true
			}
			continue
		}
		name, below := bytes.CutPrefix(pointer, []byte(c.pointer+"/"))
		if below && bytes.IndexByte(name, '/') < 0 && !c.known.get(unescapePointer(string(name))) {
			return true
		}
	}
	for i := range w.shared {
		if w.shared[i].pointer == string(pointer) && isBare(value) && (isNull(value) || value[0] == '{' || value[0] == '[') {
			return true
		}
	}
	return false
}

// inElement splits a pointer into the element of a list or map and the place in that,
// nil where it leads to the element itself; both are nil where it leads elsewhere.
func (c *collection) inElement(pointer []byte) (element, rest []byte) {
	below, found := bytes.CutPrefix(pointer, []byte(c.pointer))
	if !found || len(below) == 0 || below[0] != '/' {
		return nil, nil
	}
	end := bytes.IndexByte(below[1:], '/') + 1
	if end == 0 {
		return below[1:], nil
	}
	return below[1:end], below[end:]
}

// looksInto reports whether a way looks an entry up in the elements of a list or map.
func (w *way) looksInto(pointer []byte, e *entry) bool {
	for i := range w.collections {
		c := &w.collections[i]
		element, rest := c.inElement(pointer)
		switch {
		case element == nil:
		case rest == nil:
			if !c.isMap && len(c.keys) == 0 && c.way.keeps && isIndex(element) {
				return true
			}
		case c.isMap || len(c.keys) > 0 && selectorKeys(string(element)).equal(c.keys):
			if c.way.looksUp(rest, e) {
				return true
			}
		}
	}
	return false
}

func isIndex(segment []byte) bool {
	index, err := strconv.Atoi(string(segment))
	return err == nil && index >= 0 && strconv.Itoa(index) == string(segment)
}
