// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// anchorRules sets the anchors of a scope's rules: the objects without which nothing is computed from missing fields, and
// defaults are not filled in. above is the path of the scope in the spoke and in the hub.
func (c *compiler) anchorRules(scope *conversion.Scope, above [2]conversion.Path) {
	for _, exchange := range slices.Concat(scope.Exchanges, scope.Derived) {
		fromNothing := exchange.CEL != nil && exchange.CEL.WhenMissing
		c.anchorFields(above, exchange.Spoke, false, fromNothing)
		c.anchorFields(above, exchange.Hub, true, fromNothing)
	}
	for i := range scope.Defaults {
		scope.Defaults[i].Anchor = c.anchorOf(above, scope.Defaults[i].Path, scope.Defaults[i].Hub)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		c.anchorRules(&collection.Scope, inside(collection, above))
	}
}

// inside returns the paths of what is in a list, map or object, by those of the scope around it.
func inside(collection *conversion.Collection, above [2]conversion.Path) [2]conversion.Path {
	return [2]conversion.Path{collection.Inside(false, above[0]), collection.Inside(true, above[1])}
}

func (c *compiler) anchorFields(above [2]conversion.Path, fields []conversion.Field, ofHub, fromNothing bool) {
	for i, path := range fields {
		if fromNothing {
			fields[i].Anchor = c.anchorOf(above, path.Path, ofHub)
		}
		fields[i].Text, fields[i].Label = len(above[0]) == 0 && isText(path.Path), len(above[0]) == 0 && path.Path.IsLabel()
	}
}

// isText reports whether a path leads to a label or an annotation.
func isText(path conversion.Path) bool { return len(path) > 0 && path[0] == "metadata" }

// anchorOf returns the path of the innermost object around a field that the other side has, too: as the other side has it,
// relative to the scope.
func (c *compiler) anchorOf(above [2]conversion.Path, local conversion.Path, ofHub bool) conversion.Path {
	_, other := c.sides(ofHub)
	at := above[0]
	if ofHub {
		at = above[1]
	}
	if len(at) == 0 && isText(local) {
		return local[:1]
	}
	full := c.placed(slices.Concat(at, local), ofHub)
	scope := c.placed(append(slices.Clip(at), ""), ofHub)
	for i := len(full) - 1; i >= len(scope); i-- {
		claimed := slices.ContainsFunc(other.claims, func(c claim) bool { return full[:i].HasPrefix(c.path) })
		if found, err := resolve(other.schema, full[:i]); err == nil && !claimed && found.Type == "object" {
			return other.local(full[:i], scope[:len(scope)-1])
		}
	}
	return nil
}

// preserveMapKeys preserves single keys of maps, labels and annotations that a rule claims on one
// side and no rule claims on the other. The schema allows such a key on both sides, but they are
// not the same field.
func (c *compiler) preserveMapKeys(claims []claim, of *side) {
	for _, claim := range claims {
		path := claim.path
		found, err := resolve(of.schema, path)
		if err != nil || !c.namesKey(of.schema, path) || claimOf(of.claims, path) != nil {
			continue
		}
		scope := scopeAround(path)
		cur := cursor{full: path, local: path[len(scope):], scope: c.scopeAt(scope)}
		c.preserveUnclaimed(cur, found, of)
	}
}

// scopeAt returns the scope of the elements at a path, or of the object with this place.
func (c *compiler) scopeAt(prefix conversion.Path) *conversion.Scope {
	scope := &c.root
	for i, segment := range prefix {
		switch {
		case segment == conversion.Each:
			scope = &c.collectionOf(scope, prefix[:i]).Scope
		case isPlace(segment) && (i+1 == len(prefix) || prefix[i+1] != conversion.Each):
			scope = &c.collectionOf(scope, prefix[:i+1]).Scope
		}
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
	for _, claim := range slices.Concat(c.spoke.claims, c.hub.claims) {
		if len(claim.path) <= len(cur.full)+1 || !claim.path.HasPrefix(cur.full) {
			continue
		}
		if name := claim.path[len(cur.full)]; name != conversion.Each && !slices.Contains(names, name) {
			names = append(names, name)
			c.shareKeys(cur.child(name))
		}
	}
	c.share(cur.full)
}

// share notes the values that rules move out of an object that both sides have, in the scope of each such rule.
func (c *compiler) share(object conversion.Path) {
	var scopes []conversion.Path
	var leaving []rulePaths
	spoke, hub := c.spoke, c.hub
	isOutIn := func(of *side) func(conversion.Path) bool {
		own := of.shown(object)
		return func(path conversion.Path) bool { return !of.shown(path).HasPrefix(own) }
	}
	outOfSpoke, outOfHub := isOutIn(spoke), isOutIn(hub)
	for _, rule := range c.rulePaths {
		out := rulePaths{}
		if slices.ContainsFunc(rule.hub, outOfHub) {
			out.spoke = slices.DeleteFunc(slices.Clone(rule.spoke), outOfSpoke)
		}
		if slices.ContainsFunc(rule.spoke, outOfSpoke) {
			out.hub = slices.DeleteFunc(slices.Clone(rule.hub), outOfHub)
		}
		if len(out.spoke)+len(out.hub) == 0 {
			continue
		}
		leaving = append(leaving, out)
		if scope := commonScope(append(slices.Concat(rule.spoke, rule.hub), append(slices.Clip(object), ""))...); !contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	for _, scope := range scopes {
		shared := conversion.Shared{Spoke: spoke.local(object, scope), Hub: hub.local(object, scope)}
		if len(shared.Spoke) == 0 || len(shared.Hub) == 0 || slices.Contains(shared.Spoke, conversion.Each) || slices.Contains(shared.Hub, conversion.Each) {
			continue // the object itself, or an element of a list that is one value in the other version
		}
		for _, out := range leaving {
			for _, path := range out.spoke {
				shared.OfSpoke = append(shared.OfSpoke, spoke.local(path, scope))
			}
			for _, path := range out.hub {
				shared.OfHub = append(shared.OfHub, hub.local(path, scope))
			}
		}
		in := c.scopeAt(scope)
		in.Shared = append(in.Shared, shared)
	}
}
