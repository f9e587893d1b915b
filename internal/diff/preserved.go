// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
	"github.com/conversion-operator/conversion-operator/internal/terminal"
)

// Preserved is a field of a version that gets a place in other versions, or loses it,
// and with objects, one of which objects preserve values that it concerns.
type Preserved struct {
	Version string `json:"version"`
	// Path is written as in a policy; elements of lists are [*].
	Path string `json:"path"`
	// Gains and Loses are the fields of other versions that are its place from now on,
	// or were.
	Gains []Place `json:"gains,omitempty"`
	Loses []Place `json:"loses,omitempty"`
	// Objects that preserve a value of it, among those that were given. BecomeData are
	// those in which it becomes data once they are rewritten, and CarriedOn those in
	// which it stays in the annotation, even at its version.
	Objects    int `json:"objects,omitempty"`
	BecomeData int `json:"becomeData,omitempty"`
	CarriedOn  int `json:"carriedOn,omitempty"`
	// Why says why it is carried on.
	Why string `json:"why,omitempty"`
}

// Place is where a field is in another version. Paths are empty where that is unknown.
type Place struct {
	Version string   `json:"version"`
	Paths   []string `json:"paths,omitempty"`
}

// field is one of a version, whatever it is converted to.
type field struct{ version, path string }

// preserving are the fields whose place changes, and those that objects preserve
// and that become data, or cannot.
func preserving(old, next compiled, objects []any) ([]Preserved, error) {
	found := map[field]*Preserved{}
	if old.result.Ruleset != nil {
		maps.Copy(found, places(old, next))
	}
	if err := next.count(objects, found); err != nil {
		return nil, err
	}
	var sorted []Preserved
	for _, one := range found {
		if len(one.Gains)+len(one.Loses)+one.BecomeData+one.CarriedOn > 0 {
			sorted = append(sorted, *one)
		}
	}
	slices.SortFunc(sorted, func(a, b Preserved) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path))
	})
	return sorted, nil
}

// places are the fields that get a place in another version, or lose it. Another hub
// has other pairs of versions: some went through the former hub.
func places(old, next compiled) map[field]*Preserved {
	was, found := old.owners(), map[field]*Preserved{}
	for at, is := range next.owners() {
		before := was[at]
		if len(before) == 0 {
			continue // a field that is new is preserved in no object
		}
		one := &Preserved{Version: at.version, Path: at.path}
		for _, other := range slices.Sorted(maps.Keys(is)) {
			if !slices.Contains(old.result.Ruleset.Versions, other) {
				continue // nothing was converted to it
			}
			owner, known := before[other]
			if !known {
				owner = old.throughHub(at, other)
			}
			switch {
			case owner == compile.OwnerPreserved && is[other] == compile.OwnerExact:
				one.Gains = append(one.Gains, Place{other, next.counterparts(at, other)})
			case owner == compile.OwnerExact && is[other] == compile.OwnerPreserved:
				one.Loses = append(one.Loses, Place{other, old.counterparts(at, other)})
			}
		}
		if len(one.Gains)+len(one.Loses) > 0 {
			found[at] = one
		}
	}
	return found
}

// owners of the fields of all versions, by the versions that they are converted to.
func (c compiled) owners() map[field]map[string]compile.Owner {
	found := map[field]map[string]compile.Owner{}
	for at, leaf := range c.leaves {
		is := field{at.version, at.path}
		if found[is] == nil {
			found[is] = map[string]compile.Owner{}
		}
		found[is][at.other] = leaf.Owner
	}
	return found
}

// throughHub is who has a field of a spoke in another spoke.
func (c compiled) throughHub(at field, other string) compile.Owner {
	if leaf := c.leaves[key{at.version, c.hub(), at.path}]; leaf == nil || leaf.Owner != compile.OwnerExact {
		return compile.OwnerPreserved
	}
	for _, path := range c.counterparts(at, c.hub()) {
		for of, leaf := range c.leaves {
			if of.version == c.hub() && of.other == other && leaf.Owner == compile.OwnerPreserved && isIn(of.path, path) {
				return compile.OwnerPreserved
			}
		}
	}
	return compile.OwnerExact
}

// isIn reports whether a path is another one, or leads into it.
func isIn(path, root string) bool {
	rest, found := strings.CutPrefix(path, root)
	return found && (rest == "" || strings.ContainsAny(rest[:1], ".["))
}

// counterparts are the fields of another version that a field becomes.
func (c compiled) counterparts(at field, other string) []string {
	leaf := c.leaves[key{at.version, other, at.path}]
	if leaf == nil {
		return nil
	}
	if leaf.RuleAt == "" {
		return []string{at.path}
	}
	var paths []string
	for _, verdict := range c.result.Leaves {
		if verdict.Rule == leaf.RuleAt && verdict.Version == other && !slices.Contains(paths, verdict.Root) {
			paths = append(paths, verdict.Root)
		}
	}
	slices.Sort(paths)
	return paths
}

// count converts objects by the rules after the change, each to the versions of which
// it preserves something and back, and counts what becomes of that.
func (c compiled) count(objects []any, found map[field]*Preserved) error {
	if len(objects) == 0 || c.result.Ruleset == nil {
		return nil
	}
	converter, err := conversion.NewConverter(c.result.Ruleset)
	if err != nil {
		return err
	}
	of := preserved.Resource{Name: c.result.Ruleset.CRD, Versions: c.result.Ruleset.Versions}
	for _, object := range objects {
		own, ours := c.versionOf(object)
		if !ours {
			continue
		}
		for _, version := range of.Versions {
			entries := of.Entries(object, version)
			if len(entries) == 0 {
				continue
			}
			at, back, err := thereAndBack(converter, object, own, version, c.result.Ruleset)
			if err != nil {
				return fmt.Errorf("an object of %s cannot be converted to %s and back: %w", c.result.Ruleset.CRD, version, err)
			}
			for _, e := range entries {
				c.add(found, e, version, of.Foretold(e, version, object, at, back), at)
			}
		}
	}
	return nil
}

func (c compiled) add(found map[field]*Preserved, e conversion.Entry, version string, fate preserved.Fate, at any) {
	is := field{version, preserved.Path(e.Pointer)}
	if found[is] == nil {
		found[is] = &Preserved{Version: version, Path: is.path}
	}
	one := found[is]
	one.Objects++
	switch fate {
	case preserved.Data:
		one.BecomeData++
	case preserved.CarriedOn:
		one.CarriedOn++
		one.Why = cmp.Or(one.Why, preserved.Obstacle(c.result.Ruleset, version, e, at))
	}
}

// versionOf an object, if it is one that the rules convert.
func (c compiled) versionOf(object any) (version string, ours bool) {
	members, _ := object.(map[string]any)
	apiVersion, _ := members["apiVersion"].(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	plan := c.result.Ruleset
	return version, group == plan.Group && members["kind"] == plan.Kind && slices.Contains(plan.Versions, version)
}

// thereAndBack converts an object to a version and back to its own. What is of its own
// version is looked at once it has come back from another one.
func thereAndBack(converter *conversion.Converter, object any, own, version string, plan *conversion.Ruleset) (at, back any, err error) {
	through := version
	if version == own {
		through = otherThan(own, append([]string{plan.Hub}, plan.Versions...))
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, nil, err
	}
	if text, err = converter.Convert(nil, text, through); err != nil {
		return nil, nil, err
	}
	if at, err = Decode(text); err != nil {
		return nil, nil, err
	}
	if text, err = converter.Convert(nil, text, own); err != nil {
		return nil, nil, err
	}
	if back, err = Decode(text); version == own {
		at = back
	}
	return at, back, err
}

// otherThan is the first other version.
func otherThan(own string, versions []string) string {
	for _, version := range versions {
		if version != own {
			return version
		}
	}
	return own
}

// Decode reads an object and keeps the text of its numbers.
func Decode(text []byte) (object any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return object, decoder.Decode(&object)
}

// Says is what becomes of preserved data, in sentences without a full stop.
func (p Preserved) Says() (sentences []string) {
	what := p.Path + " of " + p.Version
	who := "objects that preserve " + what
	if p.BecomeData > 0 {
		who = preserve(p.BecomeData, what)
	}
	if len(p.Gains) > 0 || p.BecomeData > 0 {
		sentences = append(sentences, who+": it becomes data"+in(p.Gains)+" by a migration run")
	}
	if p.CarriedOn > 0 {
		sentences = append(sentences, preserve(p.CarriedOn, what)+": it stays in the annotation, because "+p.Why)
	}
	for _, place := range p.Loses {
		sentences = append(sentences, what+" no longer has a place in "+place.Version+": it is preserved in an annotation while an object is there")
	}
	return sentences
}

func preserve(objects int, what string) string {
	if objects == 1 {
		return "1 object preserves " + what
	}
	return terminal.Count(objects, "object") + " preserve " + what
}

// in names the places, with their fields.
func in(places []Place) string {
	var all []string
	for _, place := range places {
		name := place.Version
		if len(place.Paths) > 0 {
			name += " (" + strings.Join(place.Paths, ", ") + ")"
		}
		all = append(all, name)
	}
	if len(all) == 0 {
		return ""
	}
	return " in " + strings.Join(all, ", ")
}
