// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// Preserved is a field of a version that gains or loses counterparts in other versions, or
// of which objects preserve values that the change affects.
type Preserved struct {
	Version string `json:"version"`
	// Path has the format of a policy; elements of lists are [*].
	Path string `json:"path"`
	// Gains are the counterparts that the field has after the change, and did not have
	// before. Loses are those that it has no longer.
	Gains []Place `json:"gains,omitempty"`
	Loses []Place `json:"loses,omitempty"`
	// Objects that preserve a value of the field, among the given ones. In BecomeData of
	// them, the value becomes data when the object is rewritten; in CarriedOn, it stays
	// in the annotation even at its version.
	Objects    int `json:"objects,omitempty"`
	BecomeData int `json:"becomeData,omitempty"`
	CarriedOn  int `json:"carriedOn,omitempty"`
	// Why is the reason for CarriedOn.
	Why string `json:"why,omitempty"`
}

// Place is the counterpart of a field in another version. Paths is empty if unknown.
type Place struct {
	Version string   `json:"version"`
	Paths   []string `json:"paths,omitempty"`
}

// field identifies a field of a version, independent of the other version.
type field struct{ version, path string }

// preservedChanges returns the fields whose counterparts change, and those whose preserved
// values become data, or cannot.
func preservedChanges(old, next compiled, objects []manifest.Object) ([]Preserved, error) {
	found := map[field]*Preserved{}
	if old.result.Ruleset != nil {
		found = counterpartChanges(old, next)
	}
	if err := next.countFates(objects, found); err != nil {
		return nil, err
	}
	var sorted []Preserved
	for _, p := range found {
		if len(p.Gains)+len(p.Loses)+p.BecomeData+p.CarriedOn > 0 {
			sorted = append(sorted, *p)
		}
	}
	slices.SortFunc(sorted, func(a, b Preserved) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path))
	})
	return sorted, nil
}

// counterpartChanges returns the fields that gain or lose a counterpart. Another hub
// converts other pairs of versions directly: the former rules converted some of them
// through the former hub.
func counterpartChanges(old, next compiled) map[field]*Preserved {
	was, found := old.owners(), map[field]*Preserved{}
	for f, owners := range next.owners() {
		before := was[f]
		if len(before) == 0 {
			continue // no object preserves a new field
		}
		p := &Preserved{Version: f.version, Path: f.path}
		for _, other := range slices.Sorted(maps.Keys(owners)) {
			if !slices.Contains(old.result.Ruleset.Versions, other) {
				continue // the former rules did not convert to it
			}
			owner, known := before[other]
			if !known {
				owner = old.ownerThroughHub(f, other)
			}
			switch {
			case owner == compile.OwnerPreserved && owners[other] == compile.OwnerExact:
				p.Gains = append(p.Gains, Place{other, next.counterparts(f, other)})
			case owner == compile.OwnerExact && owners[other] == compile.OwnerPreserved:
				p.Loses = append(p.Loses, Place{other, old.counterparts(f, other)})
			}
		}
		if len(p.Gains)+len(p.Loses) > 0 {
			found[f] = p
		}
	}
	return found
}

// owners returns the owners of each field, by the other version.
func (c compiled) owners() map[field]map[string]compile.Owner {
	found := map[field]map[string]compile.Owner{}
	for k, leaf := range c.leaves {
		f := field{k.version, k.path}
		if found[f] == nil {
			found[f] = map[string]compile.Owner{}
		}
		found[f][k.other] = leaf.Owner
	}
	return found
}

// ownerThroughHub returns the owner of a spoke's field in another spoke.
func (c compiled) ownerThroughHub(f field, other string) compile.Owner {
	if leaf := c.leaves[key{f.version, c.hub(), f.path}]; leaf == nil || leaf.Owner != compile.OwnerExact {
		return compile.OwnerPreserved
	}
	for _, path := range c.counterparts(f, c.hub()) {
		for k, leaf := range c.leaves {
			if k.version == c.hub() && k.other == other && leaf.Owner == compile.OwnerPreserved && isIn(k.path, path) {
				return compile.OwnerPreserved
			}
		}
	}
	return compile.OwnerExact
}

// isIn reports whether a path is equal to root, or below it.
func isIn(path, root string) bool {
	rest, found := strings.CutPrefix(path, root)
	return found && (rest == "" || strings.ContainsAny(rest[:1], ".["))
}

// counterparts returns the fields of another version that correspond to a field.
func (c compiled) counterparts(f field, other string) []string {
	leaf := c.leaves[key{f.version, other, f.path}]
	if leaf == nil {
		return nil
	}
	if leaf.RuleAt == "" {
		return []string{f.path}
	}
	inside := ""
	if leaf.kind == "move" || leaf.kind == "each" {
		inside = c.insideOf(f, leaf.RuleAt)
	}
	var paths []string
	for _, verdict := range c.result.Leaves {
		if path := verdict.Root + inside; verdict.Rule == leaf.RuleAt && verdict.Version == other && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// insideOf returns the path of a field in the value that a rule moves: there, both versions have the same
// names.
func (c compiled) insideOf(f field, rule string) string {
	for _, verdict := range c.result.Leaves {
		if verdict.Rule == rule && verdict.Version == f.version && verdict.Path == f.path {
			return strings.TrimPrefix(f.path, verdict.Root)
		}
	}
	return ""
}

// countFates converts each object by the rules after the change, to the versions of which
// it preserves something and back, and counts what happens to the preserved values.
func (c compiled) countFates(objects []manifest.Object, found map[field]*Preserved) error {
	ruleset := c.result.Ruleset
	if len(objects) == 0 || ruleset == nil {
		return nil
	}
	converter, err := conversion.NewConverter(ruleset)
	if err != nil {
		return err
	}
	of := preserved.Resource{Name: ruleset.CRD, Versions: ruleset.Versions}
	for _, given := range objects {
		own, ok := c.versionOf(given)
		if !ok {
			continue
		}
		object, err := preserved.Decode(given.JSON)
		if err != nil {
			return fmt.Errorf("%s: %w", given, err)
		}
		for _, version := range of.Versions {
			entries := of.Entries(object, version)
			if len(entries) == 0 {
				continue
			}
			at, back, err := roundTrip(converter, ruleset, object, own, version)
			if err != nil {
				return fmt.Errorf("an object of %s cannot be converted to %s and back: %w", ruleset.CRD, version, err)
			}
			for _, e := range entries {
				c.countFate(found, e, version, of.PredictFate(e, version, object, at, back), at)
			}
		}
	}
	return nil
}

func (c compiled) countFate(found map[field]*Preserved, e preserve.Entry, version string, fate preserved.Fate, at any) {
	f := field{version, preserved.Path(e.Place())}
	p := found[f]
	if p == nil {
		p = &Preserved{Version: version, Path: f.path}
		found[f] = p
	}
	p.Objects++
	switch fate {
	case preserved.Data:
		p.BecomeData++
	case preserved.CarriedOn:
		p.CarriedOn++
		p.Why = cmp.Or(p.Why, preserved.Obstacle(c.result.Ruleset, version, e, at))
	}
}

// versionOf returns the version of an object, and whether the rules convert it.
func (c compiled) versionOf(object manifest.Object) (version string, ok bool) {
	group, version, _ := strings.Cut(object.APIVersion, "/")
	ruleset := c.result.Ruleset
	return version, group == ruleset.Group && object.Kind == ruleset.Kind && slices.Contains(ruleset.Versions, version)
}

// roundTrip converts an object to a version and back to its own. For its own version it
// returns the object after a round trip to another one.
func roundTrip(converter *conversion.Converter, ruleset *conversion.Ruleset, object any, own, version string) (at, back any, err error) {
	through := version
	others := slices.Concat([]string{ruleset.Hub}, ruleset.Versions)
	if i := slices.IndexFunc(others, func(other string) bool { return other != own }); version == own && i >= 0 {
		through = others[i]
	}
	text, err := converter.Convert(nil, preserved.Encode(object), through)
	if err != nil {
		return nil, nil, err
	}
	if at, err = preserved.Decode(text); err != nil {
		return nil, nil, err
	}
	if text, err = converter.Convert(nil, text, own); err != nil {
		return nil, nil, err
	}
	if back, err = preserved.Decode(text); version == own {
		at = back
	}
	return at, back, err
}

// Sentences describes what happens to preserved data, without full stops.
func (p Preserved) Sentences() (sentences []string) {
	field := p.Path + " of " + p.Version
	subject := "objects that preserve " + field
	if p.BecomeData > 0 {
		subject = objectsPreserve(p.BecomeData, field)
	}
	if len(p.Gains) > 0 || p.BecomeData > 0 {
		sentences = append(sentences, subject+": it becomes data"+inPlaces(p.Gains)+" by a migration run")
	}
	if p.CarriedOn > 0 {
		sentences = append(sentences, objectsPreserve(p.CarriedOn, field)+": it stays in the annotation, because "+p.Why)
	}
	for _, place := range p.Loses {
		sentences = append(sentences, field+" no longer has a place in "+place.Version+": it is preserved in an annotation while an object is there")
	}
	return sentences
}

func objectsPreserve(objects int, field string) string {
	if objects == 1 {
		return "1 object preserves " + field
	}
	return terminal.Count(objects, "object") + " preserve " + field
}

// inPlaces lists counterparts with their paths.
func inPlaces(places []Place) string {
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
