// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Preserved is the content of the annotations of one version in an object.
type Preserved struct {
	// Version is the version whose data is preserved.
	Version string
	// Bytes is the size of the annotations' values.
	Bytes int
	// Fields are the paths of preserved data, as in a policy, sorted and without duplicates. [*]
	// stands for all elements of a list or map.
	Fields []string
	// Values are those of Fields with a preserved value, and not just a preserved absence or
	// order.
	Values []string
	// Unreadable is true if at least a part of a value is in no known format.
	Unreadable bool
}

// PreservedIn returns what the annotations of an object preserve, by version. It ignores versions
// that the ruleset does not have, and other resources.
func (c *Converter) PreservedIn(annotations map[string]string) []Preserved {
	a := tree.NewArena()
	defer a.Free()
	var all []Preserved
	for _, v := range c.versions {
		text := annotations[v.annotation]
		if text == "" {
			continue
		}
		data := read(a, text)
		found := Preserved{Version: v.name, Bytes: len(text), Unreadable: data.Unreadable != ""}
		for i := range data.Entries {
			e := &data.Entries[i]
			path := v.pathOf(e.Place()).String()
			found.Fields = append(found.Fields, path)
			if e.HasValue() {
				found.Values = append(found.Values, path)
			}
		}
		found.Fields, found.Values = eachOnce(found.Fields), eachOnce(found.Values)
		all = append(all, found)
	}
	return all
}

// read returns the data in the text of an annotation. Text that is no such data is unreadable.
func read(a *tree.Arena, text string) preserve.Data {
	if data, ok := preserve.Decode(a, []byte(text)); ok {
		return data
	}
	return preserve.Data{Unreadable: text}
}

// Unplaced is a field with a preserved value.
type Unplaced struct {
	// Field is its path, as in a policy.
	Field string
	// Misfit is the reason why the schema does not allow the value, nil if it does.
	Misfit error
}

// Unplaced returns, for each value that the annotations preserve of a version, whether the field
// allows it.
func (c *Converter) Unplaced(annotations map[string]string, version string) []Unplaced {
	v := c.version(version)
	if v == nil {
		return nil
	}
	a := tree.NewArena()
	defer a.Free()
	var all []Unplaced
	data := read(a, annotations[v.annotation])
	for i := range data.Entries {
		e := &data.Entries[i]
		if !e.HasValue() {
			continue
		}
		path, schema := v.locate(e.Place())
		one := Unplaced{Field: path.String()}
		if schema != nil {
			one.Misfit = schema.Fits(e.Value)
		}
		all = append(all, one)
	}
	return all
}

func eachOnce(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// WithoutPreserved returns the changes that remove preserved data of the accepted fields of a
// version from annotations: new values by name, nil for an annotation to remove. It returns nil if
// there is nothing to remove. A path also accepts everything below it. Unreadable text stays. A
// value of a field that another spoke shares moves to that spoke's annotation.
func (c *Converter) WithoutPreserved(annotations map[string]string, of string, accepted []string) (map[string]*string, error) {
	from := c.version(of)
	if from == nil {
		return nil, nil
	}
	paths, err := parsePaths(accepted)
	if err != nil {
		return nil, err
	}
	a := tree.NewArena()
	defer a.Free()
	data := make(preservedData, len(c.versions))
	for i, v := range c.versions {
		if text, there := annotations[v.annotation]; there {
			data[i] = read(a, text)
		}
	}
	own, changed := data[from.index], map[*version]bool{}
	var removed []preserve.Entry
	own.Entries = slices.DeleteFunc(own.Entries, func(e preserve.Entry) bool {
		accepted := from.pathOf(e.Place()).below(paths)
		if accepted {
			removed = append(removed, e)
		}
		return accepted
	})
	data[from.index], changed[from] = own, len(removed) > 0
	for _, e := range removed {
		if other := from.moveToSiblings(data, e); other != nil {
			changed[other] = true
		}
	}
	var changes map[string]*string
	for i, v := range c.versions {
		if !changed[v] {
			continue
		}
		if changes == nil {
			changes = map[string]*string{}
		}
		changes[v.annotation] = nil
		if of := data[i]; len(of.Entries) > 0 || of.Unreadable != "" {
			changes[v.annotation] = new(string(of.Encode(nil)))
		}
	}
	return changes, nil
}

func parsePaths(texts []string) ([]Path, error) {
	var paths []Path
	for _, text := range texts {
		path, err := ParsePath(text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// below reports whether a path is one of others, or below one of them.
func (p Path) below(others []Path) bool {
	return slices.ContainsFunc(others, func(other Path) bool { return len(other) <= len(p) && p.Meets(other) })
}

// Accepts reports whether one of the accepted losses of a policy is the field or above it.
func Accepts(accepted []string, field string) bool {
	paths, err := parsePaths(accepted)
	path, other := ParsePath(field)
	return err == nil && other == nil && path.below(paths)
}

// pathOf returns the path of an address, with [*] for every element.
func (v *version) pathOf(at preserve.Address) Path {
	path, _ := v.locate(at)
	return path
}

// locate returns pathOf and the schema of the place, nil if unknown.
func (v *version) locate(at preserve.Address) (path Path, found *shape.Schema) {
	found = v.shape
	for _, segment := range at {
		if segment.Element || found != nil && (found.IsMap() || found.Kind == shape.ArrayKind) {
			path, found = append(path, Each), elementShape(found, nil)
		} else {
			path, found = append(path, segment.Name), shapeAt(found, Path{segment.Name})
		}
	}
	return path, found
}

// Entries returns what the annotations of an object preserve of a version of a resource
// (plural.group), sorted by address. readable is false if at least a part of the annotation
// is in another format.
func Entries(annotations map[string]string, resource, version string) (all []preserve.Entry, readable bool) {
	data := dataOf(annotations, resource, version)
	return data.Entries, data.Unreadable == ""
}

// Dropped returns the pointers of values that were dropped by overflow: Drop, as far as the
// annotation names them.
func Dropped(annotations map[string]string, resource, version string) (pointers []string) {
	return dataOf(annotations, resource, version).Dropped
}

func dataOf(annotations map[string]string, resource, version string) preserve.Data {
	text, there := annotations[AnnotationName(resource, version)]
	if !there {
		return preserve.Data{}
	}
	return read(tree.NewArena(), text) // it is not freed: the entries are a part of it
}
