// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// anchorRules sets the anchors of a scope's rules: the objects without which preserved data does
// not come back, and defaults are not filled in.
func (c *compiler) anchorRules(scope *conversion.Scope, above conversion.Path) {
	for _, exchange := range slices.Concat(scope.Exchanges, scope.Derived) {
		anchorFields(above, exchange.Spoke, c.hub, c.hubClaims)
		anchorFields(above, exchange.Hub, c.spoke, c.spokeClaims)
	}
	for i := range scope.Defaults {
		_, other := c.sides(scope.Defaults[i].Hub)
		scope.Defaults[i].Anchor = anchorOf(above, scope.Defaults[i].Path, other.schema, *other.claims)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		c.anchorRules(&collection.Scope, collection.Inside(slices.Concat(above, collection.Path)))
	}
}

func anchorFields(above conversion.Path, fields []conversion.Field, other *schema.Structural, claims []claim) {
	for i := range fields {
		full := slices.Concat(above, fields[i].Path)
		fields[i].Anchor = anchorOf(above, fields[i].Path, other, claims)
		fields[i].Text, fields[i].Label = isText(full), full.IsLabel()
	}
}

// isText reports whether a path leads to a label or an annotation.
func isText(path conversion.Path) bool { return path[0] == "metadata" }

// anchorOf returns the length of the longest prefix of a path that is an object on the other side
// too.
func anchorOf(above, local conversion.Path, other *schema.Structural, claims []claim) int {
	if len(above) == 0 && local[0] == "metadata" {
		return 1
	}
	for i := len(local) - 1; i > 0; i-- {
		full := slices.Concat(above, local[:i])
		claimed := slices.ContainsFunc(claims, func(c claim) bool { return full.HasPrefix(c.path) })
		if found, err := resolve(other, full); err == nil && !claimed && found.Type == "object" {
			return i
		}
	}
	return 0
}

// preserveMapKeys preserves single keys of maps, labels and annotations that a rule claims on one
// side and no rule claims on the other. The schema allows such a key on both sides, but they are
// not the same field.
func (c *compiler) preserveMapKeys(claims, others []claim, other *schema.Structural, ofSpoke bool) {
	for _, claim := range claims {
		path := claim.path
		found, err := resolve(other, path)
		if err != nil || !c.namesKey(other, path) || claimOf(others, path) != nil {
			continue
		}
		prefix, local := splitScope(path)
		cur := cursor{full: path, local: local, anchor: len(local) - 1, scope: c.scopeAt(prefix)}
		if path[0] == "metadata" {
			cur.anchor = 1
		}
		c.preserveUnclaimed(cur, found, ofSpoke)
	}
}

// scopeAt returns the scope of the elements at a path, or of the object with this place.
func (c *compiler) scopeAt(prefix conversion.Path) *conversion.Scope {
	scope := &c.root
	for i, segment := range prefix {
		if segment != conversion.Each {
			if c.isObjectPlace(prefix[:i+1]) {
				_, local := splitScope(prefix[:i+1])
				scope = &objectWith(scope, local).Scope
			}
			continue
		}
		held, err := resolve(c.spoke, prefix[:i])
		_, local := splitScope(prefix[:i])
		scope = &collectionOf(scope, local, err == nil && held.Items == nil).Scope
	}
	return scope
}

// namesKey reports whether a path names a key of a map.
func (c *compiler) namesKey(root *schema.Structural, path conversion.Path) bool {
	if path[0] == "metadata" {
		return true
	}
	for current, i := root, 0; i < len(path) && current != nil; i++ {
		if valuesOf(current) != nil && path[i] != conversion.Each {
			return true
		}
		current = childOf(current, path[i])
	}
	return false
}

// rulePaths are the paths of a rule on both sides.
type rulePaths struct {
	spoke, hub []conversion.Path
}

// shareKeys calls share for a map and for the objects in it that rules name by key, deepest first.
func (c *compiler) shareKeys(cur cursor) {
	var names []string
	for _, claim := range slices.Concat(c.spokeClaims, c.hubClaims) {
		if len(claim.path) <= len(cur.full)+1 || !claim.path.HasPrefix(cur.full) {
			continue
		}
		if name := claim.path[len(cur.full)]; name != conversion.Each && !slices.Contains(names, name) {
			names = append(names, name)
			c.shareKeys(cur.child(name))
		}
	}
	c.share(cur)
}

// share notes the values that rules move out of an object that both sides have.
func (c *compiler) share(cur cursor) {
	if len(cur.local) == 0 {
		return
	}
	shared := conversion.Shared{Path: cur.local}
	for _, paths := range c.rulePaths {
		shared.Spoke = append(shared.Spoke, cur.leaving(paths.spoke, paths.hub)...)
		shared.Hub = append(shared.Hub, cur.leaving(paths.hub, paths.spoke)...)
	}
	if len(shared.Spoke)+len(shared.Hub) > 0 {
		cur.scope.Shared = append(cur.scope.Shared, shared)
	}
}

// leaving returns those paths of a rule that are in the object, relative to the scope, if any of
// its paths on the other side is outside of the object.
func (s cursor) leaving(paths, others []conversion.Path) []conversion.Path {
	out := func(path conversion.Path) bool { return !path.HasPrefix(s.full) }
	if !slices.ContainsFunc(others, out) {
		return nil
	}
	var local []conversion.Path
	for _, path := range paths {
		if !out(path) {
			local = append(local, path[len(s.full)-len(s.local):])
		}
	}
	return local
}
