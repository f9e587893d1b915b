// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Converter converts decoded objects. It is not for concurrent use.
type Converter struct {
	ruleset *ruleset
	schemas map[string]*shape.Schema
	// directions are those of the previous objects.
	directions map[directionKey]*direction
	// hubNames are the names of the hub by version, ownNames the reverse.
	hubNames, ownNames map[string]names
	// atHub are the places of the hub in the current step.
	atHub places
}

type directionKey struct {
	spoke          string
	toHub, isWhole bool
	// name and namespace are those of the object.
	name, namespace any
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
	c := &Converter{read, schemas, map[directionKey]*direction{}, map[string]names{}, map[string]names{}, nil}
	for i := range read.Spokes {
		spoke := &read.Spokes[i]
		toHub, toSpoke := namesOf(spoke.Renamed)
		c.hubNames[spoke.Version], c.ownNames[spoke.Version] = toHub, toSpoke
		schema := schemas[spoke.Version]
		if schema != nil {
			if schema, err = new(shape.Reader).ReadAs(read.Schemas[spoke.Version], toHub.shape()); err != nil {
				return nil, err
			}
		}
		spoke.Root.bindSchemas(schema, schemas[read.Hub], toSpoke)
	}
	return c, nil
}

// direction returns the direction of a step for an object.
func (c *Converter) direction(x map[string]any, from, to string) *direction {
	key := directionKey{from, to == c.ruleset.Hub, isWhole(x), nil, nil}
	if !key.toHub {
		key.spoke = to
	}
	key.name, _ = find(x, path{"metadata", "name"}).(string)
	key.namespace, _ = find(x, path{"metadata", "namespace"}).(string)
	if c.directions[key] == nil {
		i := slices.IndexFunc(c.ruleset.Spokes, func(s spoke) bool { return s.Version == key.spoke })
		toHub, toSpoke := directions(&c.ruleset.Spokes[i].Root, key.isWhole, x["metadata"])
		c.directions[key], _ = ordered(key.toHub, toHub, toSpoke)
	}
	return c.directions[key]
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
	// Data that is restored at the hub on the way need not fit the hub's schema, if the result
	// fits the schema of the target.
	if converted, err := c.through(object, from, to, true); err == nil && c.fitsWhole(converted, to) {
		return converted, nil
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

// fitsWhole reports whether the schema of a version allows an object.
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
	d := c.direction(x, from, to)
	x = c.hubNames[from].value(x).(map[string]any)
	c.atHub = d.yPlaces
	if from == c.ruleset.Hub {
		c.atHub = d.xPlaces
	}
	s := c.take(x, to)
	if err := c.takeFromSiblings(x, s, d); err != nil {
		return nil, err
	}
	excluded := s.takeExcluded()
	leaving := c.take(x, from)
	notBack := leaving.takeExcluded()
	leaving.removeLive(x, d)
	s.leaving, s.others = leaving, append(c.others(x, from, to), leaving, notBack)
	s.lenient, s.partial, s.refusesStatus = lenient, !isWhole(x), c.ruleset.RefusesStatus
	y, keep := d.convert(x, s, "")
	object := y.(map[string]any)
	left := d.mergeUnclaimed(x, object, s, keep)
	d.putBack(object, excluded, s, left, keep)
	object["apiVersion"] = c.ruleset.Group + "/" + to
	if err := c.put(object, to, left); err != nil {
		return nil, err
	}
	if err := c.removeFromSiblings(object, keep, d.back); err != nil {
		return nil, err
	}
	leaving.inheritAnchors(keep)
	leaving.add(keep)
	leaving.addExcluded(notBack)
	if err := c.put(object, from, leaving); err != nil {
		return nil, err
	}
	return c.ownNames[to].value(object), nil
}

// read returns the preserved data of a version, take also removes it, and put writes it. Annotations have
// the paths of their version, and preserved data here has those of the rules.
func (c *Converter) read(object any, version string) *preserved {
	p, _ := readPreserved(object, c.ruleset.CRD, version)
	return c.places(version).entries(c.hubNames[version].entries(p))
}

func (c *Converter) take(object any, version string) *preserved {
	p := c.places(version).entries(c.hubNames[version].entries(takePreserved(object, c.ruleset.CRD, version)))
	p.names = c.ownNames[version]
	return p
}

func (c *Converter) put(object map[string]any, version string, p *preserved) error {
	return putPreserved(object, c.ruleset.CRD, version, c.ownNames[version].entries(c.places(version).reversed().entries(p)))
}

// others returns the preserved data of third versions.
func (c *Converter) others(x any, from, to string) []*preserved {
	var others []*preserved
	for _, version := range c.ruleset.Versions {
		if version != from && version != to {
			other := c.read(x, version)
			others = append(others, other)
		}
	}
	return others
}

// takeFromSiblings moves preserved values of shared fields from the annotations of sibling versions
// to s. Values of the own annotation take precedence.
func (c *Converter) takeFromSiblings(x map[string]any, s *preserved, d *direction) error {
	adopted := newPreserved()
	for _, version := range d.siblings() {
		other := c.read(x, version)
		common := newPreserved()
		for key, e := range other.entries {
			if key.kind == aValue && d.shares(key.pointer, version) {
				common.entries[key] = e
				delete(other.entries, key)
			}
		}
		if len(common.entries) == 0 {
			continue
		}
		adopted.add(common)
		c.take(x, version)
		if err := c.put(x, version, other); err != nil {
			return err
		}
	}
	adopted.add(s)
	s.add(adopted)
	return nil
}

// removeFromSiblings removes the values of shared fields from the annotations of sibling versions
// if keep has the newer values of x.
func (c *Converter) removeFromSiblings(object map[string]any, keep *preserved, back *direction) error {
	for _, version := range back.siblings() {
		other := c.read(object, version)
		before := len(other.entries)
		for key := range other.entries {
			if key.kind == aValue && back.shares(key.pointer, version) && keep.entries[key] != nil {
				delete(other.entries, key)
			}
		}
		if len(other.entries) == before {
			continue
		}
		c.take(object, version)
		if err := c.put(object, version, other); err != nil {
			return err
		}
	}
	return nil
}

// isWhole tells an object from a fragment, which has neither a name nor a uid.
func isWhole(object any) bool {
	for _, name := range []string{"name", "uid"} {
		if text, isText := find(object, path{"metadata", name}).(string); isText && text != "" {
			return true
		}
	}
	return false
}
