// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Converter converts decoded objects.
type Converter struct {
	plan *plan
	// ways lead to the hub, or from it.
	ways map[direction]*way
}

type direction struct {
	spoke        string
	toHub, whole bool
}

// New reads a plan that conversion.Plan.Marshal wrote.
func New(plan []byte) (*Converter, error) {
	read, err := readPlan(plan)
	if err != nil {
		return nil, err
	}
	c := &Converter{read, map[direction]*way{}}
	for i := range read.Spokes {
		spoke := &read.Spokes[i]
		for _, whole := range []bool{false, true} {
			c.ways[direction{spoke.Version, true, whole}], c.ways[direction{spoke.Version, false, whole}] = ways(&spoke.Root, whole)
		}
	}
	return c, nil
}

// maxAnnotations is what all annotations of an object may have together, in bytes.
const maxAnnotations = 256 << 10

// Convert returns the object at another version, and leaves the object as it is.
func (c *Converter) Convert(object any, to string) (any, error) {
	from, err := c.versionOf(object)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.plan.Versions, from) || !slices.Contains(c.plan.Versions, to) {
		return nil, fmt.Errorf("the plan does not convert %s to %s", from, to)
	}
	hops := []string{to}
	if from != c.plan.Hub && to != c.plan.Hub {
		hops = []string{c.plan.Hub, to}
	}
	if from == to {
		hops = nil
	}
	object = clone(object)
	for _, to := range hops {
		if object, err = c.hop(object.(map[string]any), from, to); err != nil {
			return nil, err
		}
		from = to
	}
	return object, nil
}

func (c *Converter) versionOf(object any) (string, error) {
	apiVersion, _ := find(object, path{"apiVersion"}).(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	if group != c.plan.Group || find(object, path{"kind"}) != c.plan.Kind {
		return "", fmt.Errorf("the plan is not for %s of %s", find(object, path{"kind"}), apiVersion)
	}
	return version, nil
}

// hop converts between a spoke and the hub.
func (c *Converter) hop(x map[string]any, from, to string) (any, error) {
	if !isObject(x["metadata"]) {
		x["metadata"] = map[string]any{}
	}
	s := takeKept(x, to)
	takeKept(x, from)
	w := c.ways[direction{to, false, isWhole(x)}]
	if to == c.plan.Hub {
		w = c.ways[direction{from, true, isWhole(x)}]
	}
	y, keep := w.convert(x, s, "")
	object := y.(map[string]any)
	object["apiVersion"] = c.plan.Group + "/" + to
	return object, putKept(object, from, keep)
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

const keptPrefix = "conversion-operator.io/"

// takeKept takes away what was kept aside of a version, and returns what of it
// is readable.
func takeKept(object map[string]any, version string) kept {
	annotations := path{"metadata", "annotations"}
	at := path{"metadata", "annotations", keptPrefix + version}
	value := find(object, at)
	if value == none {
		return nil
	}
	if remove(object, at); bare(find(object, annotations)) {
		remove(object, annotations)
	}
	text, _ := value.(string)
	decoded, err := Decode([]byte(text))
	members, isObject := decoded.(map[string]any)
	if err != nil || !isObject {
		return nil
	}
	return members
}

// putKept keeps values aside, if there are any.
func putKept(object map[string]any, version string, keep kept) error {
	if len(keep) == 0 {
		return nil
	}
	put(object, path{"metadata", "annotations", keptPrefix + version}, marshal(keep))
	size := 0
	for name, value := range find(object, path{"metadata", "annotations"}).(map[string]any) {
		text, _ := value.(string)
		size += len(name) + len(text)
	}
	if size > maxAnnotations {
		return fmt.Errorf("the annotations have %d bytes", size)
	}
	return nil
}

// members are the names of what is kept directly below a place, sorted.
func (k kept) members(at string) []string {
	var names []string
	for pointer := range k {
		escaped, under := strings.CutPrefix(pointer, at+"/")
		if under && !strings.Contains(escaped, "/") {
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(escaped))
		}
	}
	slices.Sort(names)
	return names
}

// indexes are those of the elements that are kept at a list, sorted.
func (k kept) indexes(at string) []int {
	var indexes []int
	for pointer := range k {
		text, under := strings.CutPrefix(pointer, at)
		index, err := strconv.Atoi(text)
		if under && err == nil && index >= 0 && strconv.Itoa(index) == text {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes
}
