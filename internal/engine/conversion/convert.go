// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// Converter converts objects by a ruleset. It is immutable and safe for concurrent use.
type Converter struct {
	ruleset *Ruleset
	// projection covers every path that the ruleset uses, in any version.
	projection *projection
	// kind is the JSON string of the kind.
	kind     []byte
	versions []*version
	// schemas identifies the schemas of all versions.
	schemas string
	// lossless converts by the law of package preserve, nil if that is not asked for.
	lossless *lossless
}

// version is one version of the ruleset.
type version struct {
	name string
	// apiVersion is the JSON string of the apiVersion.
	apiVersion []byte
	// annotation holds the preserved values while the object is in another version.
	annotation name
	// token signs truncated forms at this version. It is empty if nothing is truncated.
	token []byte
	// shape is the schema of the version, nil if unknown.
	shape *shape.Schema
	// toHub and fromHub are nil for the hub.
	toHub, fromHub *direction
	// hubNames are the names of the hub, and ownNames the reverse, nil if the version has the same.
	// hubShape is the shape with the names of the hub.
	hubNames, ownNames *naming
	hubShape           *shape.Schema
}

// NewConverter prepares a ruleset. It fails if a rule or a schema of it is not usable.
func NewConverter(ruleset *Ruleset) (*Converter, error) {
	withoutSchemas := *ruleset // a converter pod has many, and needs only what is read from them
	withoutSchemas.Schemas = nil
	c := &Converter{ruleset: &withoutSchemas, projection: &projection{}, kind: appendQuoted(nil, ruleset.Kind)}
	c.projection.addPath(Path{"metadata", "annotations"})
	var schemas shape.Reader
	all := sha256.New()
	for _, name := range ruleset.Versions {
		_, _ = all.Write(ruleset.Schemas[name])
		v, err := newVersion(ruleset, name, &schemas)
		if err != nil {
			return nil, err
		}
		c.versions = append(c.versions, v)
	}
	c.schemas = string(all.Sum(nil))
	for _, v := range c.versions {
		name, spoke := v.name, ruleset.spoke(v.name)
		switch {
		case spoke != nil:
			c.projection.addScope(&spoke.Root)
			toHub, toSpoke := NamesOf(spoke.Renamed)
			v.hubNames, v.ownNames = newNaming(toHub), newNaming(toSpoke)
			if v.hubShape = v.shape; toHub != nil && v.shape != nil {
				var err error
				if v.hubShape, err = schemas.ReadAs(ruleset.Schemas[name], toHub); err != nil {
					return nil, fmt.Errorf("the ruleset of %s has names of the version %s that cannot be followed: %w", ruleset.CRD, name, err)
				}
			}
			v.toHub, v.fromHub = spoke.Root.directions(v.hubShape, c.version(ruleset.Hub).shape, toSpoke)
			if err := v.toHub.compileCEL(nil, nil); err != nil {
				return nil, fmt.Errorf("the ruleset of %s has a rule for the version %s that cannot be followed: %w", ruleset.CRD, name, err)
			}
		case name != ruleset.Hub && len(ruleset.Versions) > 1:
			return nil, fmt.Errorf("the ruleset of %s covers the version %s and has no rules for it", ruleset.CRD, name)
		}
	}
	c.projection.merge()
	return c, nil
}

func newVersion(ruleset *Ruleset, name string, schemas *shape.Reader) (*version, error) {
	v := &version{
		name: name, apiVersion: appendQuoted(nil, ruleset.Group+"/"+name),
		annotation: newName(AnnotationName(ruleset.CRD, name)),
		token:      ruleset.Truncating.token(ruleset.CRD, name),
	}
	text, known := ruleset.Schemas[name]
	if !known {
		return v, nil
	}
	var err error
	if v.shape, err = schemas.Read(text); err != nil {
		return nil, fmt.Errorf("the ruleset of %s has a schema of the version %s that is not readable: %w", ruleset.CRD, name, err)
	}
	return v, nil
}

// namedShape returns the schema of the version with the names of the hub.
func (v *version) namedShape() *shape.Schema {
	if v.hubShape != nil {
		return v.hubShape
	}
	return v.shape
}

// Convert appends the object, converted to the version, to dst. The object's own apiVersion is the
// source version. Errors are for users of kubectl; they name neither the object nor the version,
// which the webhook adds.
func (c *Converter) Convert(dst, object []byte, toVersion string) ([]byte, error) {
	if c.lossless != nil {
		out, _, err := c.lossless.convert(dst, object, toVersion, nil)
		return out, err
	}
	out, outcome, err := c.convert(dst, object, toVersion, nil, false)
	if err != nil {
		return dst, err
	}
	if err := onlySpace(object, outcome.Read); err != nil {
		return dst, err
	}
	return out, nil
}

// Answer is Convert for the JSON value at the beginning of text, without the metadata that the API
// server ignores in an answer: everything but name, namespace, uid, labels and annotations
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, restoreObjectMeta). It calls stop from
// time to time and returns ErrStopped once that returns true. A nil stop never stops the
// conversion.
func (c *Converter) Answer(dst, text []byte, toVersion string, stop func(memory int64) bool) ([]byte, Outcome, error) {
	return c.convert(dst, text, toVersion, stop, true)
}

func (c *Converter) convert(dst, text []byte, toVersion string, stop func(memory int64) bool, trimMetadata bool) ([]byte, Outcome, error) {
	s := stepPool.Get().(*step)
	defer s.release()
	s.start(stop)
	s.refusesStatus = c.ruleset.RefusesStatus
	s.dropsOverflow, s.truncates, s.outcome = c.ruleset.DropOverflow, c.ruleset.truncates(toVersion), Outcome{}
	root, end, err := s.parseFirst(text, c.projection)
	if err != nil {
		return dst, Outcome{}, err
	}
	s.outcome.Read = end
	from, err := c.versionOf(root)
	if err != nil {
		return dst, s.outcome, err
	}
	s.outcome.From = from.name
	to := c.version(toVersion)
	switch {
	case to == nil:
		return dst, s.outcome, c.unknownVersion(toVersion)
	case from == to:
		return append(dst, root.text...), s.outcome, nil
	}
	if err := c.refuseTruncated(s, root, from); err != nil {
		return dst, s.outcome, err
	}
	if root, err = c.convertVersions(s, root, from, to); err != nil {
		return dst, s.outcome, err
	}
	c.truncate(s, root, from, to)
	if trimMetadata {
		root.get(&nameMetadata).keepOnly(answerMetadata.lookup)
	}
	return root.append(dst), s.outcome, nil
}

// answerMetadata are the metadata fields that the API server reads from an answer.
var answerMetadata = setOf([]string{"annotations", "labels", "name", "namespace", "uid"})

// version returns the version with this name, nil if there is none.
func (c *Converter) version(name string) *version {
	for _, v := range c.versions {
		if v.name == name {
			return v
		}
	}
	return nil
}

// convertVersions converts from spoke to hub, from hub to spoke, or from spoke to spoke through
// the hub. In the last case, the hub form only exists for the rules, so values that the hub's
// schema does not allow are restored in it. If the result does not fit the target's schema, the
// conversion runs again without these values.
func (c *Converter) convertVersions(s *step, root *node, from, to *version) (*node, error) {
	hub := c.version(c.ruleset.Hub)
	s.lenient, s.misfitRestored = false, false
	switch {
	case from.toHub == nil:
		return c.convertStep(s, root, from, to, to.fromHub)
	case to.fromHub == nil:
		return c.convertStep(s, root, from, hub, from.toHub)
	}
	text := root.text
	s.lenient = true
	result, err := c.convertThroughHub(s, root, from, hub, to)
	if s.lenient = false; !s.misfitRestored || err == nil && s.fitsSchema(result, to.shape) {
		return result, err
	}
	s.outcome.PreservedBytes, s.outcome.DroppedValues = 0, 0
	if root, err = s.parse(text, c.projection); err != nil {
		return root, err
	}
	return c.convertThroughHub(s, root, from, hub, to)
}

func (c *Converter) convertThroughHub(s *step, root *node, from, hub, to *version) (*node, error) {
	root, err := c.convertStep(s, root, from, hub, from.toHub)
	if err != nil {
		return root, err
	}
	s.lenient = false
	// Moved values must be parsed where the rules of the second step look for them.
	if root, err = s.parse(s.bytes(root), c.projection); err != nil {
		return root, err
	}
	stretched := s.misfitRestored
	root, err = c.convertStep(s, root, hub, to, to.fromHub)
	s.misfitRestored = stretched
	return root, err
}

// fitsSchema reports whether the schema allows the object.
func (s *step) fitsSchema(root *node, schema *shape.Schema) bool {
	for m := root.first; m != nil && schema != nil; m = m.next {
		name := string(s.nameOf(m))
		if IsEnvelope(name) {
			continue
		}
		if field := schema.Field(name); field == nil || s.applicableSchema(field).Fits(s.bytes(m)) != nil {
			return false
		}
	}
	return true
}

// versionOf returns the version of an object. It fails if group, kind or version is not in the
// ruleset.
func (c *Converter) versionOf(root *node) (*version, error) {
	if root.kind != object {
		return nil, failf(CauseWrongKind, "a %s object was expected", c.ruleset.Kind)
	}
	if metadata := root.get(&nameMetadata); metadata != nil && !metadata.isObject() && !metadata.isNull() {
		return nil, errors.New("its metadata is not an object")
	}
	if v := c.versionOfUnescaped(root.get(&nameAPIVersion), root.get(&nameKind)); v != nil {
		return v, nil
	}
	return c.versionNamed(stringOf(root.get(&nameAPIVersion)), stringOf(root.get(&nameKind)))
}

// versionNamed returns the version of an object by its apiVersion and kind.
func (c *Converter) versionNamed(apiVersion, kind string) (*version, error) {
	group, name, _ := strings.Cut(apiVersion, "/")
	if group != c.ruleset.Group || kind != c.ruleset.Kind {
		return nil, failf(CauseWrongKind, "the object is %.200q of %.200q, and the ruleset is for %s of %s", kind, apiVersion, c.ruleset.Kind, c.ruleset.Group)
	}
	if v := c.version(name); v != nil {
		return v, nil
	}
	return nil, c.unknownVersion(name)
}

// versionOfUnescaped returns the version of an object whose apiVersion and kind have no escapes,
// nil if they have.
func (c *Converter) versionOfUnescaped(apiVersion, kind *node) *version {
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

// stringOf returns the text of a string value, and "" for any other value.
func stringOf(n *node) string {
	if n == nil || !n.isText() {
		return ""
	}
	return decodeString(n.text)
}

func (c *Converter) unknownVersion(version string) error {
	return failf(CauseUnknownVersion, "version %.200q is not in the ruleset of %s, which has %s: a version that was just added is converted once its ruleset is rolled out",
		version, c.ruleset.CRD, strings.Join(c.ruleset.Versions, ", "))
}

// convertStep converts between a spoke and the hub, mostly in place.
func (c *Converter) convertStep(s *step, root *node, from, to *version, d *direction) (*node, error) {
	s.clearEntries()
	if s.hubPlaces = d.targetPlaces; from.toHub == nil {
		s.hubPlaces = d.sourcePlaces
	}
	if from.hubNames != nil {
		var err error
		if root, err = s.renamed(root, from.hubNames, c.projection); err != nil {
			return root, err
		}
	}
	before := root.text
	metadata := s.metadata(root)
	s.complete = isComplete(metadata)
	s.objectName, s.objectNamespace = textOf(metadata.get(&nameName)), textOf(metadata.get(&nameNamespace))
	targetData := s.takePreserved(metadata, to, s.restore)
	if err := c.adoptFromSiblings(s, metadata, d, &targetData); err != nil {
		return root, err
	}
	sourceData := s.takePreserved(metadata, from, nil)
	sourceData.entries = s.stillPreserved(root, d, sourceData.entries)
	s.restore, s.sourceEntries, s.foreignEntries = targetData.entries, sourceData.entries, c.otherEntries(s, metadata, from, to, d)
	for _, own := range []entries{sourceData.entries, sourceData.excluded} {
		if len(own) > 0 {
			s.foreignEntries = append(s.foreignEntries, own)
		}
	}
	s.restoring = len(s.restore) > 0
	s.convertScope(d, root, nil)
	if s.meter.err != nil {
		return root, s.meter.err
	}
	root.set(&nameAPIVersion, s.raw(to.apiVersion))
	root, targetData.entries = s.mergeUnresolved(root, to, d, before)
	root, targetData.excluded = s.putBack(root, to, d, targetData)
	if s.meter.err != nil {
		return root, s.meter.err
	}
	metadata = s.metadata(root)
	if err := s.writePreserved(metadata, to, targetData); err != nil {
		return root, err
	}
	s.preserving = s.preserving.sorted()
	if err := c.supersedeInSiblings(s, metadata, d); err != nil {
		return root, err
	}
	if len(sourceData.entries) > 0 {
		sourceData.adoptAnchors(s.preserving)
		s.preserving = append(sourceData.entries, s.preserving...).sorted()
	}
	err := s.writePreserved(metadata, from, preserved{s.preserving, sourceData.excluded, sourceData.unreadable})
	if err != nil || to.ownNames == nil {
		return root, err
	}
	return s.renamed(root, to.ownNames, openAnnotations)
}

// textOf returns the JSON of a string that is not empty, nil for any other value.
func textOf(n *node) []byte {
	if n == nil || !n.isText() || string(n.text) == `""` {
		return nil
	}
	return n.text
}

// metadata returns the metadata of an object, and creates it if it is missing.
func (s *step) metadata(root *node) *node {
	metadata := root.get(&nameMetadata)
	if metadata == nil || !metadata.isObject() {
		metadata = s.newObject()
		root.set(&nameMetadata, metadata)
	}
	return metadata
}

// otherEntries returns the preserved entries of versions that are neither source nor target of the
// step. The step must not remove the objects that these entries need to be restored.
func (c *Converter) otherEntries(s *step, metadata *node, from, to *version, d *direction) (all []entries) {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || len(c.versions) < 3 || !d.removesEmptied {
		return nil
	}
	for _, v := range c.versions {
		if v == from || v == to {
			continue
		}
		other := s.peekPreserved(annotations, v)
		if len(other.entries) > 0 {
			all = append(all, other.sorted())
		}
	}
	return all
}

// isComplete reports whether the object is complete: the API server gives every object a name and
// a uid. Server-side apply also converts fragments of objects, which have neither.
func isComplete(metadata *node) bool {
	const quotes = 2
	for _, name := range [...]*name{&nameName, &nameUID} {
		if value := metadata.get(name); value != nil && value.isText() && len(value.text) > quotes {
			return true
		}
	}
	return false
}
