// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Converter converts objects by a ruleset. It never changes and may be used by
// many goroutines at once.
type Converter struct {
	ruleset *Ruleset
	// look is wherever the ruleset has something to do, in any version.
	look *look
	// kind is what objects say, a JSON string.
	kind []byte
	// versions are those of the ruleset.
	versions []*version
}

// version is one that the ruleset covers.
type version struct {
	name string
	// apiVersion is what objects say, a JSON string.
	apiVersion []byte
	// annotation has what is preserved while the object is in another version;
	// legacy had it in format 1.
	annotation, legacy name
	// token signs truncated forms at this version, empty where there are none.
	token []byte
	// shape is what the schema of the version says, nil where that is not known.
	shape *shape.Schema
	// toHub and fromHub are nil for the hub.
	toHub, fromHub *direction
}

// NewConverter prepares a ruleset.
func NewConverter(ruleset *Ruleset) (*Converter, error) {
	c := &Converter{ruleset: ruleset, look: newLook(), kind: appendQuoted(nil, ruleset.Kind)}
	c.look.path(Path{"metadata", "annotations"})
	for _, name := range ruleset.Versions {
		v, err := newVersion(ruleset, name)
		if err != nil {
			return nil, err
		}
		c.versions = append(c.versions, v)
	}
	for _, v := range c.versions {
		name, spoke := v.name, ruleset.spoke(v.name)
		switch {
		case spoke != nil:
			c.look.addScope(&spoke.Root)
			v.toHub, v.fromHub = spoke.Root.ways(v.shape, c.version(ruleset.Hub).shape)
			if err := v.toHub.compile(nil); err != nil {
				return nil, fmt.Errorf("the ruleset of %s has a rule for the version %s that cannot be followed: %w", ruleset.CRD, name, err)
			}
		case name != ruleset.Hub && len(ruleset.Versions) > 1:
			return nil, fmt.Errorf("the ruleset of %s covers the version %s and has no rules for it", ruleset.CRD, name)
		}
	}
	c.look.merge()
	return c, nil
}

func newVersion(ruleset *Ruleset, name string) (*version, error) {
	v := &version{
		name: name, apiVersion: appendQuoted(nil, ruleset.Group+"/"+name),
		annotation: newName(AnnotationName(ruleset.CRD, name)), legacy: newName(legacyName(name)),
		token: ruleset.Truncating.token(ruleset.CRD, name),
	}
	text, known := ruleset.Schemas[name]
	if !known {
		return v, nil
	}
	var err error
	if v.shape, err = shape.Read(text); err != nil {
		return nil, fmt.Errorf("the ruleset of %s has a schema of the version %s that is not readable: %w", ruleset.CRD, name, err)
	}
	return v, nil
}

// Convert appends the object, converted to the version, to dst. The object's own
// apiVersion says from which version. Errors are for people who use kubectl;
// they name neither the object nor the version, which the webhook knows.
func (c *Converter) Convert(dst, object []byte, toVersion string) ([]byte, error) {
	out, outcome, err := c.convert(dst, object, toVersion, nil, false)
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
// It is Convert otherwise. Now and then it asks whether to stop, and does so with
// ErrStopped; it never stops where stop is nil.
func (c *Converter) Answer(dst, text []byte, toVersion string, stop func() bool) ([]byte, Outcome, error) {
	return c.convert(dst, text, toVersion, stop, true)
}

func (c *Converter) convert(dst, text []byte, toVersion string, stop func() bool, lean bool) ([]byte, Outcome, error) {
	h := stepPool.Get().(*step)
	defer h.release()
	h.start(stop)
	h.refusesStatus = c.ruleset.RefusesStatus
	h.dropsOverflow, h.truncates, h.outcome = c.ruleset.DropOverflow, c.ruleset.truncates(toVersion), Outcome{}
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
	if err := c.refuseTruncated(h, root, from); err != nil {
		return dst, h.outcome, err
	}
	if root, err = c.path(h, root, from, to); err != nil {
		return dst, h.outcome, err
	}
	c.truncate(h, root, from, to)
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

// path converts from spoke to hub, from hub to spoke, or both. What comes back at the
// hub on the way is there for the rules alone, and need not be what a hub can have.
// But if the spoke at the end cannot have what becomes of it, it does not come back.
func (c *Converter) path(h *step, root *node, from, to *version) (*node, error) {
	hub := c.version(c.ruleset.Hub)
	h.lenient, h.stretched = false, false
	switch {
	case from.toHub == nil:
		return c.takeStep(h, root, from, to, to.fromHub)
	case to.fromHub == nil:
		return c.takeStep(h, root, from, hub, from.toHub)
	}
	text := root.text
	h.lenient = true
	there, err := c.through(h, root, from, hub, to)
	if h.lenient = false; !h.stretched || err == nil && h.fitsWhole(there, to.shape) {
		return there, err
	}
	h.outcome.KeptBytes, h.outcome.DroppedValues = 0, 0
	if root, err = h.parse(text, c.look); err != nil {
		return root, err
	}
	return c.through(h, root, from, hub, to)
}

func (c *Converter) through(h *step, root *node, from, hub, to *version) (*node, error) {
	root, err := c.takeStep(h, root, from, hub, from.toHub)
	if err != nil {
		return root, err
	}
	h.lenient = false
	// What was moved is now where other rules look for it.
	if root, err = h.parse(h.bytes(root), c.look); err != nil {
		return root, err
	}
	stretched := h.stretched
	root, err = c.takeStep(h, root, hub, to, to.fromHub)
	h.stretched = stretched
	return root, err
}

// fitsWhole reports whether an object is one that its schema allows.
func (h *step) fitsWhole(root *node, s *shape.Schema) bool {
	for m := root.first; m != nil && s != nil; m = m.next {
		name := string(h.nameOf(m))
		if IsEnvelope(name) {
			continue
		}
		if field := s.Field(name); field == nil || h.judged(field).Fits(h.bytes(m)) != nil {
			return false
		}
	}
	return true
}

// versionOf holds an object's group and kind against the ruleset's.
func (c *Converter) versionOf(root *node) (*version, error) {
	if root.kind != object {
		return nil, failf(CauseWrongKind, "a %s object was expected", c.ruleset.Kind)
	}
	if metadata := root.get(&nameMetadata); metadata != nil && !metadata.isObject() && !metadata.isNull() {
		return nil, errors.New("its metadata is not an object")
	}
	if v := c.usual(root.get(&nameAPIVersion), root.get(&nameKind)); v != nil {
		return v, nil
	}
	apiVersion, kind := textOf(root.get(&nameAPIVersion)), textOf(root.get(&nameKind))
	group, name, _ := strings.Cut(apiVersion, "/")
	if group != c.ruleset.Group || kind != c.ruleset.Kind {
		return nil, failf(CauseWrongKind, "the object is %q of %q, and the ruleset is for %s of %s", kind, apiVersion, c.ruleset.Kind, c.ruleset.Group)
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
	return failf(CauseUnknownVersion, "version %q is not in the ruleset of %s, which has %s: a version that was just added is converted once its ruleset is rolled out",
		version, c.ruleset.CRD, strings.Join(c.ruleset.Versions, ", "))
}

// step converts between a spoke and the hub, mostly in place.
func (c *Converter) takeStep(h *step, root *node, from, to *version, w *direction) (*node, error) {
	h.begin()
	before := root.text
	metadata := h.metadata(root)
	h.whole = isWhole(metadata)
	arriving := h.take(metadata, to, h.restore)
	if err := c.adopt(h, metadata, w, &arriving); err != nil {
		return root, err
	}
	leaving := h.take(metadata, from, nil)
	leaving.entries = h.outlives(root, w, leaving.entries)
	h.restore, h.leaving, h.others = arriving.entries, leaving.entries, c.third(h, metadata, from, to, w)
	if len(leaving.entries) > 0 {
		h.others = append(h.others, leaving.entries)
	}
	h.restoring = len(h.restore) > 0
	h.scope(w, root, nil)
	if h.meter.err != nil {
		return root, h.meter.err
	}
	root.set(&nameAPIVersion, h.raw(to.apiVersion))
	root, arriving.entries = h.carry(root, to, w, before)
	if h.meter.err != nil {
		return root, h.meter.err
	}
	metadata = h.metadata(root)
	if err := h.write(metadata, to, arriving); err != nil {
		return root, err
	}
	h.keep = h.keep.sorted()
	if err := c.supersede(h, metadata, w); err != nil {
		return root, err
	}
	if len(leaving.entries) > 0 {
		leaving.anchorAs(h.keep)
		h.keep = append(leaving.entries, h.keep...).sorted()
	}
	return root, h.write(metadata, from, preserved{h.keep, leaving.unreadable})
}

// metadata is that of an object, which is made where there is none.
func (h *step) metadata(root *node) *node {
	metadata := root.get(&nameMetadata)
	if metadata == nil || !metadata.isObject() {
		metadata = h.newObject()
		root.set(&nameMetadata, metadata)
	}
	return metadata
}

// third are the entries of the versions that a step neither leaves nor reaches. It
// must leave the objects in place without which they would not come back.
func (c *Converter) third(h *step, metadata *node, from, to *version, w *direction) (all []entries) {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || len(c.versions) < 3 || !w.tidies {
		return nil
	}
	for _, v := range c.versions {
		if v == from || v == to {
			continue
		}
		other := h.peek(annotations, v)
		if len(other.entries) > 0 {
			all = append(all, other.sorted())
		}
	}
	return all
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
