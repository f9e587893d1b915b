// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// anchorRules tells the rules of a scope without which objects nothing that was
// preserved comes back, and nothing is filled.
func (c *compiler) anchorRules(scope *conversion.Scope, above conversion.Path) {
	for _, exchange := range scope.Exchanges {
		anchorFields(above, exchange.Spoke, c.hub, c.hubClaims)
		anchorFields(above, exchange.Hub, c.spoke, c.spokeClaims)
	}
	for i := range scope.Defaults {
		_, other := c.sides(scope.Defaults[i].Hub)
		scope.Defaults[i].Anchor = anchorOf(above, scope.Defaults[i].Path, other.schema, *other.claims)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		c.anchorRules(&collection.Scope, slices.Concat(above, collection.Path, conversion.Path{conversion.Each}))
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

// anchorOf is the length of the part of a path that the other side has too.
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

// strays preserves single keys of maps, labels and annotations, that a rule has
// on one side and no one has on the other: a schema cannot say that they are not
// there, and they are not the same.
func (c *compiler) strays(claims, others []claim, other *schema.Structural, ofSpoke bool) {
	for _, claim := range claims {
		path := claim.path
		found, err := resolve(other, path)
		if err != nil || !c.namesKey(other, path) || claimOf(others, path) != nil {
			continue
		}
		prefix, local := splitScope(path)
		at := spot{full: path, local: local, anchor: len(local) - 1, scope: c.scopeAt(prefix)}
		if path[0] == "metadata" {
			at.anchor = 1
		}
		c.oneSided(at, found, ofSpoke)
	}
}

// scopeAt is the scope of the elements that a path leads to.
func (c *compiler) scopeAt(prefix conversion.Path) *conversion.Scope {
	scope := &c.root
	for i, segment := range prefix {
		if segment != conversion.Each {
			continue
		}
		held, err := resolve(c.spoke, prefix[:i])
		_, local := splitScope(prefix[:i])
		scope = &collectionOf(scope, local, err == nil && held.Items == nil).Scope
	}
	return scope
}

// namesKey reports whether the path goes through a map by the name of a key.
func (c *compiler) namesKey(root *schema.Structural, path conversion.Path) bool {
	if path[0] == "metadata" {
		return true
	}
	for at, i := root, 0; i < len(path) && at != nil; i++ {
		if valuesOf(at) != nil && path[i] != conversion.Each {
			return true
		}
		at = step(at, path[i])
	}
	return false
}

// crossing is a rule, as the paths of its values on both sides.
type crossing struct {
	spoke, hub []conversion.Path
}

// shareKeys notes for a map which values leave it, or an object in it that rules
// name by its key. Deeper objects come first.
func (c *compiler) shareKeys(at spot) {
	var names []string
	for _, claim := range slices.Concat(c.spokeClaims, c.hubClaims) {
		if len(claim.path) <= len(at.full)+1 || !claim.path.HasPrefix(at.full) {
			continue
		}
		if name := claim.path[len(at.full)]; name != conversion.Each && !slices.Contains(names, name) {
			names = append(names, name)
			c.shareKeys(at.down(name))
		}
	}
	c.share(at)
}

// share notes which values leave an object that both sides have, if any.
func (c *compiler) share(at spot) {
	if len(at.local) == 0 {
		return
	}
	shared := conversion.Shared{Path: at.local}
	for _, crossing := range c.crossings {
		shared.Spoke = append(shared.Spoke, at.leaving(crossing.spoke, crossing.hub)...)
		shared.Hub = append(shared.Hub, at.leaving(crossing.hub, crossing.spoke)...)
	}
	if len(shared.Spoke)+len(shared.Hub) > 0 {
		at.scope.Shared = append(at.scope.Shared, shared)
	}
}

// leaving are the paths of a rule that lead into the object, in the scope, where
// one that the rule has on the other side does not.
func (s spot) leaving(paths, others []conversion.Path) []conversion.Path {
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
