// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Converter converts decoded objects.
type Converter struct {
	ruleset *ruleset
	// ways lead to the hub, or from it.
	ways    map[directionKey]*direction
	schemas map[string]*shape.Schema
}

type directionKey struct {
	spoke        string
	toHub, whole bool
}

// New reads a ruleset that conversion.Ruleset.Marshal wrote.
func New(ruleset []byte) (*Converter, error) {
	read, err := readRuleset(ruleset)
	if err != nil {
		return nil, err
	}
	schemas := map[string]*shape.Schema{}
	for version, text := range read.Schemas {
		if schemas[version], err = shape.Read(text); err != nil {
			return nil, err
		}
	}
	c := &Converter{read, map[directionKey]*direction{}, schemas}
	for i := range read.Spokes {
		spoke := &read.Spokes[i]
		spoke.Root.know(schemas[spoke.Version], schemas[read.Hub])
		for _, whole := range []bool{false, true} {
			c.ways[directionKey{spoke.Version, true, whole}], c.ways[directionKey{spoke.Version, false, whole}] = directions(&spoke.Root, whole)
		}
	}
	return c, nil
}

// Convert returns the object at another version, and leaves the object unchanged.
func (c *Converter) Convert(object any, to string) (any, error) {
	from, err := c.versionOf(object)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.ruleset.Versions, from) || !slices.Contains(c.ruleset.Versions, to) {
		return nil, fmt.Errorf("the ruleset does not convert %s to %s", from, to)
	}
	switch {
	case from == to:
		return clone(object), nil
	case from == c.ruleset.Hub || to == c.ruleset.Hub:
		return c.step(clone(object).(map[string]any), from, to, false)
	}
	// What comes back at the hub on the way need not be what a hub can have, if what
	// becomes of it is what the spoke at the end can have.
	if there, err := c.through(object, from, to, true); err == nil && c.fitsWhole(there, to) {
		return there, nil
	}
	return c.through(object, from, to, false)
}

func (c *Converter) through(object any, from, to string, lenient bool) (any, error) {
	atHub, err := c.step(clone(object).(map[string]any), from, c.ruleset.Hub, lenient)
	if err != nil {
		return nil, err
	}
	return c.step(atHub.(map[string]any), c.ruleset.Hub, to, false)
}

// fitsWhole reports whether an object is one that the schema of its version allows.
func (c *Converter) fitsWhole(object any, version string) bool {
	s := c.schemas[version]
	for name, value := range object.(map[string]any) {
		isEnvelope := name == "apiVersion" || name == "kind" || name == "metadata"
		if s != nil && !isEnvelope && (s.Field(name) == nil || !fits(s.Field(name), value, isWhole(object))) {
			return false
		}
	}
	return true
}

func (c *Converter) versionOf(object any) (string, error) {
	apiVersion, _ := find(object, path{"apiVersion"}).(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	if group != c.ruleset.Group || find(object, path{"kind"}) != c.ruleset.Kind {
		return "", fmt.Errorf("the ruleset is not for %s of %s", find(object, path{"kind"}), apiVersion)
	}
	return version, nil
}

// step converts between a spoke and the hub.
func (c *Converter) step(x map[string]any, from, to string, lenient bool) (any, error) {
	if !isObject(x["metadata"]) {
		x["metadata"] = map[string]any{}
	}
	w := c.ways[directionKey{to, false, isWhole(x)}]
	if to == c.ruleset.Hub {
		w = c.ways[directionKey{from, true, isWhole(x)}]
	}
	s := takePreserved(x, c.ruleset.CRD, to)
	if err := c.adopt(x, s, w); err != nil {
		return nil, err
	}
	leaving := takePreserved(x, c.ruleset.CRD, from)
	leaving.supersede(x, w)
	s.leaving, s.others = leaving, append(c.others(x, from, to), leaving)
	s.lenient, s.partial, s.refusesStatus = lenient, !isWhole(x), c.ruleset.RefusesStatus
	y, keep := w.convert(x, s, "")
	object := y.(map[string]any)
	object["apiVersion"] = c.ruleset.Group + "/" + to
	if err := putPreserved(object, c.ruleset.CRD, to, w.carry(x, object, s, keep)); err != nil {
		return nil, err
	}
	if err := c.supersede(object, keep, w.back); err != nil {
		return nil, err
	}
	leaving.anchorAs(keep)
	leaving.add(keep)
	return object, putPreserved(object, c.ruleset.CRD, from, leaving)
}

// others are what is preserved of third versions.
func (c *Converter) others(x any, from, to string) []*preserved {
	var others []*preserved
	for _, version := range c.ruleset.Versions {
		if version != from && version != to {
			other, _ := readPreserved(x, c.ruleset.CRD, version)
			others = append(others, other)
		}
	}
	return others
}

// adopt takes what is preserved of fields that other versions have too from their
// annotations. Its own counts more.
func (c *Converter) adopt(x map[string]any, s *preserved, w *direction) error {
	adopted := newPreserved()
	for _, version := range w.siblings() {
		other, _ := readPreserved(x, c.ruleset.CRD, version)
		common := newPreserved()
		for at, e := range other.entries {
			if at.kind == aValue && w.shares(at.pointer, version) {
				common.entries[at] = e
				delete(other.entries, at)
			}
		}
		if len(common.entries) == 0 {
			continue
		}
		adopted.add(common)
		takePreserved(x, c.ruleset.CRD, version)
		if err := putPreserved(x, c.ruleset.CRD, version, other); err != nil {
			return err
		}
	}
	adopted.add(s)
	s.add(adopted)
	return nil
}

// supersede takes away what siblings have preserved of fields of which keep has the
// values that x had.
func (c *Converter) supersede(object map[string]any, keep *preserved, back *direction) error {
	for _, version := range back.siblings() {
		other, _ := readPreserved(object, c.ruleset.CRD, version)
		before := len(other.entries)
		for at := range other.entries {
			if at.kind == aValue && back.shares(at.pointer, version) && keep.entries[at] != nil {
				delete(other.entries, at)
			}
		}
		if len(other.entries) == before {
			continue
		}
		takePreserved(object, c.ruleset.CRD, version)
		if err := putPreserved(object, c.ruleset.CRD, version, other); err != nil {
			return err
		}
	}
	return nil
}

// isWhole tells an object from a fragment: every object has a name and a uid.
func isWhole(object any) bool {
	for _, name := range []string{"name", "uid"} {
		if text, isText := find(object, path{"metadata", name}).(string); isText && text != "" {
			return true
		}
	}
	return false
}
