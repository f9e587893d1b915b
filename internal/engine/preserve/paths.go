// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

// Paths is a set of paths in objects of a version. A nil Paths is empty.
type Paths struct {
	// Whole is true if the set has the value here, with everything in it.
	Whole bool
	// Bare is true if the set has the object here, but not what is in it.
	Bare bool
	// Group numbers the paths that one rule reads together, from 1.
	Group int
	// Keys are the fields that identify the elements of a list here, although its schema does not say so.
	Keys []string
	// Selected is true for a list that exists in the other version only by fields of elements that rules select.
	Selected bool
	// Text is true for a label or an annotation that a rule knows: preserved data may be for no others, because clients may
	// be allowed to write some only.
	Text bool
	// Others are the members that are not named; nil if the set has none of them.
	Others  *Paths
	Each    *Paths
	members map[string]*Paths
}

// whole is the set of everything.
var whole = &Paths{Whole: true}

// Add returns the place of a path in the set, which it makes. Each segment that is each stands for all elements of a
// list, or all members of a map.
func (p *Paths) Add(path []string, each string) *Paths {
	for _, name := range path {
		next := p.members[name]
		if name == each {
			next = p.Each
		}
		if next == nil {
			next = &Paths{}
			if name == each {
				p.Each = next
			} else {
				if p.members == nil {
					p.members = map[string]*Paths{}
				}
				p.members[name] = next
			}
		}
		p = next
	}
	return p
}

// Remove removes a path from the set, with everything in it, and the objects around it.
func (p *Paths) Remove(path []string, each string) {
	for _, name := range path {
		if p.Whole {
			p.Whole, p.Bare, p.Others = false, true, whole
		}
		_, named := p.members[name]
		if name == each {
			named = p.Each != nil
		}
		if !named && p.Others != nil && p.Others.Whole {
			p.Add([]string{name}, each).Whole = true
		}
		p = p.Add([]string{name}, each)
	}
	*p = Paths{}
}

// in returns the set of what is in a value.
func (p *Paths) in(s Segment) *Paths {
	switch {
	case p == nil:
		return nil
	case p.Whole:
		return whole
	case s.Element:
		return p.Each
	}
	if member, named := p.members[s.Name]; named {
		return member
	}
	if p.Each != nil {
		return p.Each
	}
	return p.Others
}

func (p *Paths) isWhole() bool { return p != nil && p.Whole }

// Join adds another set in the place of a path.
func (p *Paths) Join(path []string, each string, other *Paths) {
	p.Add(path, each).merge(other)
}

func (p *Paths) merge(other *Paths) {
	p.Whole, p.Bare, p.Group = p.Whole || other.Whole, p.Bare || other.Bare, max(p.Group, other.Group)
	if p.Keys == nil {
		p.Keys = other.Keys
	}
	p.Text, p.Selected = p.Text || other.Text, p.Selected || other.Selected
	if p.Others == nil {
		p.Others = other.Others
	}
	if other.Each != nil {
		if p.Each == nil {
			p.Each = &Paths{}
		}
		p.Each.merge(other.Each)
	}
	for name, member := range other.members {
		if p.members == nil {
			p.members = map[string]*Paths{}
		}
		if p.members[name] == nil {
			p.members[name] = &Paths{}
		}
		p.members[name].merge(member)
	}
}
