// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// finish completes the rules and lists of a scope, of which above is the path in the spoke and in the hub, by what is known of
// all fields: the objects without which nothing is computed from missing fields, and defaults are not filled in; and the keys
// that identify elements, also of lists that only a rule goes through.
func (c *compiler) finish(scope *conversion.Scope, above [2]conversion.Path) {
	for _, exchange := range slices.Concat(scope.Exchanges, scope.Derived) {
		if exchange.CEL != nil && exchange.CEL.WhenMissing {
			c.anchorFields(above, exchange.Spoke, false)
			c.anchorFields(above, exchange.Hub, true)
		}
	}
	for i := range scope.Defaults {
		scope.Defaults[i].Anchor = c.anchorOf(above, scope.Defaults[i].Path, scope.Defaults[i].Hub)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		inside := [2]conversion.Path{collection.Inside(false, above[0]), collection.Inside(true, above[1])}
		if collection.SpokeForm == conversion.FormList && collection.HubForm == conversion.FormList {
			elements := c.locate(inside[1], true)
			if spoke, hub := elements.collection(); spoke != nil && hub != nil {
				collection.Keys = sharedKeys(elements, spoke, hub)
			}
		}
		c.finish(&collection.Scope, inside)
	}
}

func (c *compiler) anchorFields(above [2]conversion.Path, fields []conversion.Field, ofHub bool) {
	for i, path := range fields {
		fields[i].Anchor = c.anchorOf(above, path.Path, ofHub)
	}
}

// isText reports whether a path leads to a label or an annotation.
func isText(path conversion.Path) bool { return len(path) > 0 && path[0] == "metadata" }

// anchorOf returns the path of the innermost object around a field that the other side has, too: as the other side has it,
// relative to the scope.
func (c *compiler) anchorOf(above [2]conversion.Path, local conversion.Path, ofHub bool) conversion.Path {
	at := above[0]
	if ofHub {
		at = above[1]
	}
	if len(at) == 0 && isText(local) {
		return local[:1]
	}
	scope := c.locate(append(slices.Clip(at), ""), ofHub).parent()
	for around := c.locate(slices.Concat(at, local), ofHub).parent(); !around.is(scope); around = around.parent() {
		_, other := around.in.sides(ofHub)
		claims := slices.Concat(other.claims, around.in.conflicting)
		if found, err := other.resolve(around.path); err == nil && claimOf(claims, around.path) == nil && found.Type == "object" {
			return around.local(scope, !ofHub)
		}
	}
	return nil
}

// preserveMapKeys preserves single keys of maps, labels and annotations that a rule claims on one
// side and no rule claims on the other. The schema allows such a key on both sides, but they are
// not the same field.
func (f *frame) preserveMapKeys(claims []claim, of *side) {
	for _, claim := range claims {
		path := claim.path
		found, err := of.resolve(path)
		if err != nil || !namesKey(of, path) || claimOf(of.claims, path) != nil {
			continue
		}
		own, _ := f.sides(!of.isHub)
		f.checkCollision(path, own, of)
		scope := claim.scope()
		f.preserveUnclaimed(cursor{full: path, local: path[len(scope.path):], scope: f.scopeAt(scope)}, found, of)
	}
}

// namesKey reports whether a path names a key of a map, or that of an element of a list.
func namesKey(of *side, path conversion.Path) bool {
	if of.isText(path) {
		return true
	}
	for current, i := of.schema, 0; i < len(path) && current != nil; i++ {
		if (valuesOf(current) != nil || current.Items != nil) && path[i] != conversion.Each {
			return true
		}
		current = childOf(current, path[i])
	}
	return false
}

// rulePaths are the paths of a rule on both sides.
type rulePaths struct {
	spoke, hub []spot
}

// shareKeys calls share for a map and for the objects in it that rules name by key, deepest first.
func (f *frame) shareKeys(cur cursor) {
	var names []string
	for _, claim := range slices.Concat(f.spoke.claims, f.hub.claims) {
		if len(claim.path) <= len(cur.full)+1 || !claim.path.HasPrefix(cur.full) {
			continue
		}
		if name := claim.path[len(cur.full)]; name != conversion.Each && !slices.Contains(names, name) {
			names = append(names, name)
			f.shareKeys(cur.child(name))
		}
	}
	f.share(cur.full)
}

// share notes the values that rules move out of an object that both sides have, in the scope of each such rule.
func (f *frame) share(path conversion.Path) {
	object := spot{f, path}
	var scopes []spot
	var leaving []rulePaths
	isOutIn := func(ofHub bool) func(spot) bool {
		own := object.shown(ofHub)
		return func(field spot) bool { return !field.shown(ofHub).HasPrefix(own) }
	}
	outOfSpoke, outOfHub := isOutIn(false), isOutIn(true)
	for _, rule := range f.rulePaths {
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
		scope := commonScope(append(slices.Concat(rule.spoke, rule.hub), object.child(""))...)
		if !slices.ContainsFunc(scopes, scope.is) {
			scopes = append(scopes, scope)
		}
	}
	for _, scope := range scopes {
		shared := conversion.Shared{Spoke: object.local(scope, false), Hub: object.local(scope, true)}
		if len(shared.Spoke) == 0 || len(shared.Hub) == 0 || slices.Contains(shared.Spoke, conversion.Each) || slices.Contains(shared.Hub, conversion.Each) {
			continue // the object itself, or an element of a list that is one value in the other version
		}
		for _, out := range leaving {
			for _, field := range out.spoke {
				shared.OfSpoke = append(shared.OfSpoke, field.local(scope, false))
			}
			for _, field := range out.hub {
				shared.OfHub = append(shared.OfHub, field.local(scope, true))
			}
		}
		f.addSmall(object.shown(true))
		in := f.scopeAt(scope)
		in.Shared = append(in.Shared, shared)
	}
}
