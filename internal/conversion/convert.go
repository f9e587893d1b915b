// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"slices"
	"strings"
)

// maxAnnotations is the API server's limit on all annotations of an object
// together, keys and values, in bytes. It checks the answer of a conversion:
// k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
const maxAnnotations = 256 << 10

// Converter converts objects by a plan. It never changes and may be used by
// many goroutines at once.
type Converter struct {
	plan *Plan
	// look is wherever the plan has something to do, in any version.
	look *look
}

// NewConverter prepares a plan.
func NewConverter(plan *Plan) (*Converter, error) {
	c := &Converter{plan: plan, look: &look{}}
	c.look.path(Path{"metadata", "annotations"})
	for _, version := range plan.Versions {
		if version != plan.Hub && plan.spoke(version) == nil && len(plan.Versions) > 1 {
			return nil, fmt.Errorf("the conversion plan of %s covers the version %s and has no rules for it", plan.CRD, version)
		}
	}
	for i := range plan.Spokes {
		c.look.addScope(&plan.Spokes[i].Root)
	}
	c.look.merge()
	return c, nil
}

// Convert appends the object, converted to the version, to dst. The object's own
// apiVersion says from which version. Errors are for people who use kubectl;
// they name neither the object nor the version, which the webhook knows.
func (c *Converter) Convert(dst, object []byte, toVersion string) ([]byte, error) {
	root, from, err := c.read(object)
	if err != nil {
		return dst, err
	}
	if err := c.covers(from, toVersion); err != nil {
		return dst, err
	}
	if from == toVersion {
		return append(dst, object...), nil
	}
	if from != c.plan.Hub && toVersion != c.plan.Hub {
		if err := c.hop(root, from, c.plan.Hub); err != nil {
			return dst, err
		}
		// What was moved is now where other rules look for it.
		if root, from, err = c.read(root.append(nil)); err != nil {
			return dst, err
		}
	}
	if err := c.hop(root, from, toVersion); err != nil {
		return dst, err
	}
	return root.append(dst), nil
}

// read parses an object, and holds its group and kind against the plan's.
func (c *Converter) read(text []byte) (root *node, version string, err error) {
	if root, err = parse(text, c.look); err != nil {
		return nil, "", err
	}
	if root.kind != object {
		return nil, "", fmt.Errorf("a %s object was expected", c.plan.Kind)
	}
	apiVersion, kind := textOf(root.get("apiVersion")), textOf(root.get("kind"))
	group, version, _ := strings.Cut(apiVersion, "/")
	if group != c.plan.Group || kind != c.plan.Kind {
		return nil, "", fmt.Errorf("the object is %q of %q, and the conversion plan is for %s of %s", kind, apiVersion, c.plan.Kind, c.plan.Group)
	}
	return root, version, nil
}

// textOf returns a string value's text, and nothing for any other value.
func textOf(n *node) string {
	if n == nil || !isString(n.raw) {
		return ""
	}
	return decodeString(n.raw)
}

func (c *Converter) covers(versions ...string) error {
	for _, version := range versions {
		if !slices.Contains(c.plan.Versions, version) {
			return fmt.Errorf("version %q is not in the conversion plan of %s, which has %s: a version that was just added is converted once its plan is rolled out",
				version, c.plan.CRD, strings.Join(c.plan.Versions, ", "))
		}
	}
	return nil
}

// hop converts between a spoke and the hub, in place.
func (c *Converter) hop(root *node, from, to string) error {
	spoke := c.plan.spoke(from)
	toHub := spoke != nil
	if !toHub {
		spoke = c.plan.spoke(to)
	}
	metadata := root.get("metadata")
	if metadata == nil || metadata.kind != object || !metadata.isExpanded() {
		metadata = newObject()
		root.set("metadata", metadata)
	}
	h := hop{toHub: toHub, whole: isWhole(metadata), restore: takeKept(metadata, to), keep: kept{}}
	dropKept(metadata, from)
	h.scope(&spoke.Root, root, "")
	root.set("apiVersion", rawNode(appendString(nil, c.plan.Group+"/"+to)))
	return h.keep.write(metadata, from)
}

// isWhole tells an object from a fragment that server-side apply converts: the
// API server gives every object a name and a uid.
func isWhole(metadata *node) bool {
	return textOf(metadata.get("name")) != "" || textOf(metadata.get("uid")) != ""
}

// addScope looks wherever a scope has something to do.
func (l *look) addScope(scope *Scope) {
	for _, move := range scope.Moves {
		l.parent(move.Spoke)
		l.parent(move.Hub)
	}
	for i := range scope.Exchanges {
		for _, field := range slices.Concat(scope.Exchanges[i].Spoke, scope.Exchanges[i].Hub) {
			l.parent(field.Path)
		}
	}
	for _, path := range slices.Concat(scope.DropSpoke, scope.DropHub) {
		l.parent(path)
	}
	for _, d := range scope.Defaults {
		l.parent(d.Path)
	}
	for _, leaf := range slices.Concat(scope.OnlySpoke, scope.OnlyHub) {
		l.parent(leaf.Path)
		if leaf.Shell || leaf.Known != nil {
			l.path(leaf.Path)
		}
	}
	for i := range scope.Shared {
		l.path(scope.Shared[i].Path)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		at := l.path(collection.Path)
		if at.each == nil {
			at.each = &look{}
		}
		at.each.addScope(&collection.Scope)
	}
}

// merge makes a look into one element of a map see all that a look into each
// element sees: another rule, or another spoke, may name one of them.
func (l *look) merge() {
	for _, member := range l.members {
		if l.each != nil {
			member.add(l.each)
		}
		member.merge()
	}
	if l.each != nil {
		l.each.merge()
	}
}

func (l *look) add(other *look) {
	for name, member := range other.members {
		l.path(Path{name}).add(member)
	}
	if other.each != nil {
		if l.each == nil {
			l.each = &look{}
		}
		l.each.add(other.each)
	}
}

// parent looks into the object that holds a field.
func (l *look) parent(path Path) { l.path(path[:max(len(path)-1, 0)]) }

func (l *look) path(path Path) *look {
	for _, name := range path {
		if l.members == nil {
			l.members = map[string]*look{}
		}
		next := l.members[name]
		if next == nil {
			next = &look{}
			l.members[name] = next
		}
		l = next
	}
	return l
}
