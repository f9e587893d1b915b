// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"fmt"
	"strings"
)

// Converter converts objects by a plan. It never changes and may be used by
// many goroutines at once.
type Converter struct {
	plan *Plan
	// look is wherever the plan has something to do, in any version.
	look *look
	// kind is what objects say, a JSON string.
	kind []byte
	// versions are those of the plan.
	versions []*version
}

// version is one that the plan covers.
type version struct {
	name string
	// apiVersion is what objects say, a JSON string.
	apiVersion []byte
	// annotation has what is kept aside while the object is in another version.
	annotation name
	// toHub and fromHub are nil for the hub.
	toHub, fromHub *way
}

// NewConverter prepares a plan.
func NewConverter(plan *Plan) (*Converter, error) {
	c := &Converter{plan: plan, look: newLook(), kind: appendQuoted(nil, plan.Kind)}
	c.look.path(Path{"metadata", "annotations"})
	for _, name := range plan.Versions {
		v := &version{name: name, apiVersion: appendQuoted(nil, plan.Group+"/"+name), annotation: newName(KeptPrefix + name)}
		c.versions = append(c.versions, v)
		spoke := plan.spoke(name)
		switch {
		case spoke != nil:
			c.look.addScope(&spoke.Root)
			v.toHub, v.fromHub = spoke.Root.ways()
			if err := v.toHub.compile(); err != nil {
				return nil, fmt.Errorf("the conversion plan of %s has a rule for the version %s that cannot be followed: %w", plan.CRD, name, err)
			}
		case name != plan.Hub && len(plan.Versions) > 1:
			return nil, fmt.Errorf("the conversion plan of %s covers the version %s and has no rules for it", plan.CRD, name)
		}
	}
	c.look.merge()
	return c, nil
}

// Convert appends the object, converted to the version, to dst. The object's own
// apiVersion says from which version. Errors are for people who use kubectl;
// they name neither the object nor the version, which the webhook knows.
func (c *Converter) Convert(dst, object []byte, toVersion string) ([]byte, error) {
	out, outcome, err := c.convert(dst, object, toVersion, false)
	if err != nil {
		return dst, err
	}
	if err := onlySpace(object, outcome.Read); err != nil {
		return dst, err
	}
	return out, nil
}

// Answer converts the object that text begins with, and leaves out of its
// metadata what the API server does not take from an answer: everything but
// name, namespace, uid, labels and annotations
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, restoreObjectMeta).
// It is Convert otherwise.
func (c *Converter) Answer(dst, text []byte, toVersion string) ([]byte, Outcome, error) {
	return c.convert(dst, text, toVersion, true)
}

func (c *Converter) convert(dst, text []byte, toVersion string, lean bool) ([]byte, Outcome, error) {
	h := hops.Get().(*hop)
	defer h.release()
	h.dropsOverflow, h.outcome = c.plan.DropOverflow, Outcome{}
	root, end, err := h.parseFirst(text, c.look)
	if err != nil {
		return dst, Outcome{}, err
	}
	h.outcome.Read = end
	from, err := c.versionOf(root)
	if err != nil {
		return dst, h.outcome, err
	}
	h.outcome.From = from.name
	to := c.version(toVersion)
	switch {
	case to == nil:
		return dst, h.outcome, c.unknown(toVersion)
	case from == to:
		return append(dst, root.text...), h.outcome, nil
	}
	if root, err = c.path(h, root, from, to); err != nil {
		return dst, h.outcome, err
	}
	if lean {
		root.get(&nameMetadata).keepOnly(answered.of)
	}
	return root.append(dst), h.outcome, nil
}

// answered are the members of the metadata of an answer that the API server looks at.
var answered = setOf([]string{"annotations", "labels", "name", "namespace", "uid"})

// version is the one with a name, nil where there is none.
func (c *Converter) version(name string) *version {
	for _, v := range c.versions {
		if v.name == name {
			return v
		}
	}
	return nil
}

// path converts from spoke to hub, from hub to spoke, or both.
func (c *Converter) path(h *hop, root *node, from, to *version) (*node, error) {
	if from.toHub != nil {
		if err := c.hop(h, root, from, c.version(c.plan.Hub), from.toHub); err != nil || to.fromHub == nil {
			return root, err
		}
		// What was moved is now where other rules look for it.
		var err error
		if root, err = h.parse(h.bytes(root), c.look); err != nil {
			return root, err
		}
		from = c.version(c.plan.Hub)
	}
	return root, c.hop(h, root, from, to, to.fromHub)
}

// versionOf holds an object's group and kind against the plan's.
func (c *Converter) versionOf(root *node) (*version, error) {
	if root.kind != object {
		return nil, fmt.Errorf("a %s object was expected", c.plan.Kind)
	}
	if v := c.usual(root.get(&nameAPIVersion), root.get(&nameKind)); v != nil {
		return v, nil
	}
	apiVersion, kind := textOf(root.get(&nameAPIVersion)), textOf(root.get(&nameKind))
	group, name, _ := strings.Cut(apiVersion, "/")
	if group != c.plan.Group || kind != c.plan.Kind {
		return nil, fmt.Errorf("the object is %q of %q, and the conversion plan is for %s of %s", kind, apiVersion, c.plan.Kind, c.plan.Group)
	}
	if v := c.version(name); v != nil {
		return v, nil
	}
	return nil, c.unknown(name)
}

// usual is the version of an object that says so without escapes.
func (c *Converter) usual(apiVersion, kind *node) *version {
	if apiVersion == nil || kind == nil || !bytes.Equal(kind.text, c.kind) {
		return nil
	}
	for _, v := range c.versions {
		if bytes.Equal(apiVersion.text, v.apiVersion) {
			return v
		}
	}
	return nil
}

// textOf returns a string value's text, and nothing for any other value.
func textOf(n *node) string {
	if n == nil || !n.isText() {
		return ""
	}
	return decodeString(n.text)
}

func (c *Converter) unknown(version string) error {
	return fmt.Errorf("version %q is not in the conversion plan of %s, which has %s: a version that was just added is converted once its plan is rolled out",
		version, c.plan.CRD, strings.Join(c.plan.Versions, ", "))
}

// hop converts between a spoke and the hub, in place.
func (c *Converter) hop(h *hop, root *node, from, to *version, w *way) error {
	h.begin()
	metadata := root.get(&nameMetadata)
	if metadata == nil || !metadata.isObject() {
		metadata = h.newObject()
		root.set(&nameMetadata, metadata)
	}
	h.whole = isWhole(metadata)
	h.restore = h.takeKept(metadata, &to.annotation, h.restore)
	h.dropKept(metadata, &from.annotation)
	h.scope(w, root, nil)
	root.set(&nameAPIVersion, h.raw(to.apiVersion))
	return h.writeKept(metadata, &from.annotation)
}

// isWhole tells an object from a fragment that server-side apply converts: the
// API server gives every object a name and a uid.
func isWhole(metadata *node) bool {
	const quotes = 2
	for _, name := range [...]*name{&nameName, &nameUID} {
		if value := metadata.get(name); value != nil && value.isText() && len(value.text) > quotes {
			return true
		}
	}
	return false
}
