// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// A rule may move an object, list or map to another name, while other rules change what is in it. Then
// an object of the spoke first gets the names of the hub: everything that corresponds is at the same
// path in both, and the scopes of a ruleset know no other paths. After a conversion to the spoke, the
// object gets the names of the spoke again. Names are only exchanged for each other, so this loses
// nothing, whatever is in the object.
//
// Preserved data of the spoke has the names of the spoke: it belongs to the version, and outlives the
// rules.

// Renamed is a field of the spoke that has another name in the hub. Spoke and Hub have the same
// length. Spoke has the names of the spoke, and Hub those of the hub.
type Renamed struct {
	Spoke Path `json:"spoke"`
	Hub   Path `json:"hub"`
	// InElement is true for a field directly in the elements of a list, which may be a key.
	InElement bool `json:"inElement,omitempty"`
}

// sound reports whether a converter can exchange the names.
func (r Renamed) sound() bool {
	return len(r.Spoke) > 0 && len(r.Spoke) == len(r.Hub) && r.Spoke[len(r.Spoke)-1] != Each && r.Hub[len(r.Hub)-1] != Each && !IsEnvelope(r.Spoke[0]) && !IsEnvelope(r.Hub[0])
}

// soundNames reports whether a converter can exchange the names, and exchange them back.
func soundNames(renamed []Renamed) bool {
	if slices.ContainsFunc(renamed, func(r Renamed) bool { return !r.sound() }) {
		return false
	}
	toHub, toSpoke := NamesOf(renamed)
	for _, r := range renamed {
		if !slices.Equal(r.Spoke.Rename(toHub), r.Hub) || !slices.Equal(r.Hub.Rename(toSpoke), r.Spoke) {
			return false
		}
	}
	return isPermutation(toHub) && isPermutation(toSpoke)
}

func isPermutation(names *shape.Names) bool {
	if names == nil {
		return true
	}
	got := map[string]bool{}
	for _, name := range names.Of {
		got[name] = true
	}
	for name := range names.Of {
		if !got[name] {
			return false
		}
	}
	for _, in := range names.In {
		if !isPermutation(in) {
			return false
		}
	}
	return len(got) == len(names.Of) && isPermutation(names.Each)
}

// NamesOf returns the names of the hub by those of the spoke, and the reverse; nil if no field is
// renamed. The renamed fields of each object must be a permutation of its names.
func NamesOf(renamed []Renamed) (toHub, toSpoke *shape.Names) {
	for _, r := range renamed {
		toHub = addName(toHub, r.Spoke, r.Hub[len(r.Hub)-1], r.InElement)
		toSpoke = addName(toSpoke, r.Hub, r.Spoke[len(r.Spoke)-1], r.InElement)
	}
	return toHub, toSpoke
}

func addName(to *shape.Names, path Path, name string, inElement bool) *shape.Names {
	if to == nil {
		to = &shape.Names{Of: map[string]string{}, Keys: map[string]bool{}, In: map[string]*shape.Names{}}
	}
	switch first := path[0]; {
	case len(path) == 1:
		to.Of[first], to.Keys[first] = name, inElement
	case first == Each:
		to.Each = addName(to.Each, path[1:], name, inElement)
	default:
		to.In[first] = addName(to.In[first], path[1:], name, inElement)
	}
	return to
}

// Rename returns the path with other names.
func (p Path) Rename(names *shape.Names) Path {
	if names == nil {
		return p
	}
	renamed := slices.Clone(p)
	for i, segment := range p {
		renamed[i] = names.Name(segment)
		names = names.Member(segment)
	}
	return renamed
}
