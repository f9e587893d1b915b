// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Converter converts objects by a ruleset: its rules are functions (function.go), and what they lose is preserved
// (package preserve). It is immutable and safe for concurrent use.
type Converter struct {
	ruleset  *Ruleset
	versions []*version
	// fingerprint identifies rules and schemas in preserved data.
	fingerprint string
}

// version is one version of the ruleset.
type version struct {
	name string
	// index is that among the versions of the converter.
	index int
	// annotation is the name of the annotation with preserved data while the object is in another version.
	annotation string
	// token signs truncated forms at this version. It is empty if nothing is truncated.
	token string
	// shape is the schema of the version, nil if unknown.
	shape *shape.Schema
	// there and back are the functions to the hub and from it, nil for the hub.
	there, back *function
	// rules are those of a spoke, as far as they say where its values are in the hub.
	rules *Scope
	// shared are the fields that other spokes have, too, and the hub lacks.
	shared []sharedField
}

// NewConverter prepares a ruleset. It fails if a rule or a schema of it is not usable.
func NewConverter(ruleset *Ruleset) (*Converter, error) {
	withoutSchemas := *ruleset // a converter pod has many, and needs only what is read from them
	withoutSchemas.Schemas = nil
	c := &Converter{ruleset: &withoutSchemas, fingerprint: ruleset.fingerprint()}
	var schemas shape.Reader
	for _, name := range ruleset.Versions {
		v := &version{name: name, index: len(c.versions), annotation: AnnotationName(ruleset.CRD, name), token: ruleset.Truncating.token(ruleset.CRD, name)}
		if text, known := ruleset.Schemas[name]; known {
			var err error
			if v.shape, err = schemas.Read(text); err != nil {
				return nil, fmt.Errorf("the ruleset of %s has a schema of the version %s that is not readable: %w", ruleset.CRD, name, err)
			}
		}
		c.versions = append(c.versions, v)
	}
	for _, v := range c.versions {
		spoke := ruleset.spoke(v.name)
		if spoke == nil {
			if v.name != ruleset.Hub && len(ruleset.Versions) > 1 {
				return nil, fmt.Errorf("the ruleset of %s covers the version %s and has no rules for it", ruleset.CRD, v.name)
			}
			continue
		}
		if err := c.prepare(v, spoke); err != nil {
			return nil, err
		}
	}
	for _, v := range c.versions {
		if spoke := ruleset.spoke(v.name); spoke != nil {
			v.shared = c.sharedFields(&spoke.Root, nil)
		}
	}
	return c, nil
}

// prepare prepares the rules of a spoke.
func (c *Converter) prepare(v *version, spoke *Spoke) (err error) {
	v.rules = &spoke.Root
	own, hub := side{shape: v.shape}, side{shape: c.version(c.ruleset.Hub).shape}
	if v.there, v.back, err = spoke.Root.functions(own, hub); err != nil {
		return fmt.Errorf("the ruleset of %s has a rule for the version %s that cannot be followed: %w", c.ruleset.CRD, v.name, err)
	}
	return nil
}

// version returns the version with this name, nil if there is none.
func (c *Converter) version(name string) *version {
	for _, v := range c.versions {
		if v.name == name {
			return v
		}
	}
	return nil
}

// Convert appends the object, converted to the version, to dst. The object's own apiVersion is the
// source version. Errors are for users of kubectl; they name neither the object nor the version,
// which the webhook adds.
func (c *Converter) Convert(dst, object []byte, toVersion string) ([]byte, error) {
	r := newRun(c, nil)
	defer r.Free()
	return r.convert(dst, object, toVersion, r.readWhole)
}

// Answer is Convert for the JSON value at the beginning of text, without the metadata that the API
// server ignores in an answer: everything but name, namespace, uid, labels and annotations
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, restoreObjectMeta). It calls stop from
// time to time and returns ErrStopped once that returns true. A nil stop never stops the
// conversion.
func (c *Converter) Answer(dst, text []byte, toVersion string, stop func(memory int64) bool) ([]byte, Outcome, error) {
	r := newRun(c, stop)
	defer r.Free()
	r.trimMetadata = true
	dst, err := r.convert(dst, text, toVersion, r.readFirst)
	return dst, r.outcome, err
}

// Kept is an entry of preserved data in a conversion.
type Kept struct {
	preserve.Entry
	// Version is that of the entry.
	Version string
}

// Explanation is a conversion with what became of preserved data.
type Explanation struct {
	Object []byte
	// Kept are the entries of the result, sorted by version and address. Those that are new know the indexes of elements in the object (preserve.Entry,
	// Place).
	Kept []Kept
	// Judged are the entries that the object had of the target version, with their fates.
	Judged []preserve.Entry
}

// Explain is Convert that also tells what became of preserved data.
func (c *Converter) Explain(object []byte, toVersion string) (*Explanation, error) {
	r := newRun(c, nil) // it is not freed: the entries are a part of it
	out, err := r.convert(nil, object, toVersion, r.readWhole)
	if err != nil {
		return nil, err
	}
	explained := &Explanation{Object: out, Judged: r.judged}
	for _, v := range c.versions {
		for _, e := range r.data[v.index].Sorted() {
			explained.Kept = append(explained.Kept, Kept{e, v.name})
		}
	}
	return explained, nil
}

// conversionRun is the conversion of one object, with its memory.
type conversionRun struct {
	*tree.Arena
	of   *Converter
	stop func(memory int64) bool
	// expressions is what those of the object have cost.
	expressions expression.Budget
	// complete is false for a fragment of an object, such as server-side apply sends.
	complete bool
	// objectName and objectNamespace are those of the object; nil if it has none.
	objectName, objectNamespace *tree.Node
	// scopes are the values that are being converted, from that of a whole object to the innermost one.
	scopes []*tree.Node
	// isExact is true while the other direction would make the value again that is being converted, but for what was removed.
	isExact bool
	// keepEmptied is that of preserve.Function.
	keepEmptied bool
	// trimMetadata omits metadata that the API server ignores.
	trimMetadata bool
	// data is the preserved data of the object.
	data preservedData
	// between, with there and back, is the last step of the conversion: it is here so that its memory is used again.
	between     preserve.Versions
	there, back bound
	// judged are the entries of the target version that the object had.
	judged  []preserve.Entry
	outcome Outcome
}

var runs = sync.Pool{New: func() any { return &conversionRun{} }}

// newRun returns a run in memory that was used before. The caller frees it, or keeps what it has.
func newRun(c *Converter, stop func(memory int64) bool) *conversionRun {
	r := runs.Get().(*conversionRun)
	r.Arena, r.of, r.stop = tree.NewArena(), c, stop
	return r
}

// Free makes the memory available for another run.
func (r *conversionRun) Free() {
	r.Arena.Free()
	clear(r.data)
	clear(r.scopes[:cap(r.scopes)])
	*r = conversionRun{data: r.data[:0], scopes: r.scopes[:0]}
	runs.Put(r)
}

// limit calls a function, within the limits of one object.
func (r *conversionRun) limit(do func() error) error {
	return r.Limit(func(work, memory int64) error {
		switch {
		case work > workLimit:
			return &BudgetError{Cost: work, Limit: workLimit}
		case r.stop != nil && r.stop(memory):
			return ErrStopped
		}
		return nil
	}, do)
}

// readLevels is how deep an object is read at once: to its labels and annotations, and to the fields of its spec.
const readLevels = 2

// readWhole reads an object that is all of a text, and readFirst one at its beginning.
func (r *conversionRun) readWhole(text []byte) (root *tree.Node, end int, err error) {
	root, err = r.ReadLevels(text, readLevels)
	return root, len(text), err
}

func (r *conversionRun) readFirst(text []byte) (root *tree.Node, end int, err error) {
	return r.ReadFirst(text, readLevels)
}

func (r *conversionRun) convert(dst, text []byte, toVersion string, read func([]byte) (*tree.Node, int, error)) ([]byte, error) {
	out := dst
	err := r.limit(func() error {
		root, end, err := read(text)
		if err != nil {
			return failf(CauseInvalidJSON, "%v", err)
		}
		r.outcome.Read = end
		out, err = r.convertRead(dst, root, toVersion)
		return err
	})
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (r *conversionRun) convertRead(dst []byte, root *tree.Node, toVersion string) ([]byte, error) {
	from, err := r.of.versionOf(root)
	if err != nil {
		return dst, err
	}
	r.outcome.From = from.name
	to := r.of.version(toVersion)
	switch {
	case to == nil:
		return dst, r.of.unknownVersion(toVersion)
	case from == to:
		return root.Append(dst), nil
	}
	if err := r.refuseTruncated(root, from); err != nil {
		return dst, err
	}
	if root, err = r.convertTree(root, from, to); err != nil {
		return dst, err
	}
	if r.trimMetadata {
		metadata := r.Filter(root.Get("metadata"), func(name string, value *tree.Node) *tree.Node {
			if !slices.Contains(answerMetadata, name) {
				return nil
			}
			return value
		})
		root = r.With(root, "metadata", metadata)
	}
	return root.Append(dst), nil
}

// answerMetadata are the metadata fields that the API server reads from an answer.
var answerMetadata = []string{"annotations", "labels", "name", "namespace", "uid"}

// versionOf returns the version of an object. It fails if group, kind or version is not in the
// ruleset.
func (c *Converter) versionOf(root *tree.Node) (*version, error) {
	if !root.Is(tree.Object) {
		return nil, failf(CauseWrongKind, "a %s object was expected", c.ruleset.Kind)
	}
	if metadata := root.Get("metadata"); metadata != nil && !metadata.Is(tree.Object) && !metadata.Is(tree.Null) {
		return nil, errors.New("its metadata is not an object")
	}
	apiVersion, kind := root.Get("apiVersion").Text(), root.Get("kind").Text()
	group, name, _ := strings.Cut(apiVersion, "/")
	if group != c.ruleset.Group || kind != c.ruleset.Kind {
		return nil, failf(CauseWrongKind, "the object is %.200q of %.200q, and the ruleset is for %s of %s", kind, apiVersion, c.ruleset.Kind, c.ruleset.Group)
	}
	if v := c.version(name); v != nil {
		return v, nil
	}
	return nil, c.unknownVersion(name)
}

func (c *Converter) unknownVersion(version string) error {
	return failf(CauseUnknownVersion, "version %.200q is not in the ruleset of %s, which has %s: a version that was just added is converted once its ruleset is rolled out",
		version, c.ruleset.CRD, strings.Join(c.ruleset.Versions, ", "))
}

// convertTree converts between two versions. Between two spokes, the hub form only exists for the rules, so values that
// the hub's schema does not allow are restored in it. If the result does not fit the target's schema, the conversion runs
// again without these values.
func (r *conversionRun) convertTree(root *tree.Node, from, to *version) (*tree.Node, error) {
	metadata := root.Get("metadata")
	// The API server gives every object a name and a uid. A fragment has neither.
	r.complete = metadata.Get("name").Text() != "" || metadata.Get("uid").Text() != ""
	r.objectName, r.objectNamespace = nameOf(metadata.Get("name")), nameOf(metadata.Get("namespace"))
	root = r.takeData(root)
	between := r.of.version(r.of.ruleset.Hub)
	source, hub, target := preserve.Of(from.shape, !r.complete), preserve.Of(between.shape, !r.complete), preserve.Of(to.shape, !r.complete)
	if from == between || to == between {
		return r.putData(r.convertBetween(root, from, to, source, target), from, to)
	}
	through := func(hub preserve.Schema) *tree.Node {
		return r.convertBetween(r.convertBetween(root, from, between, source, hub), between, to, hub, target)
	}
	lenient, misfit := hub.Lenient()
	before := slices.Clone(r.data)
	result := through(lenient)
	if *misfit && !target.Allows(result) {
		copy(r.data, before)
		result = through(hub)
	}
	return r.putData(result, from, to)
}

// nameOf returns a text that is not empty, or nil.
func nameOf(n *tree.Node) *tree.Node {
	if n.Text() == "" {
		return nil
	}
	return n
}

// convertBetween converts between a spoke and the hub, and changes the preserved data.
func (r *conversionRun) convertBetween(root *tree.Node, from, to *version, source, target preserve.Schema) *tree.Node {
	r.there, r.back = bound{function: from.there, of: r}, bound{function: from.back, of: r}
	if from.there == nil {
		r.there.function, r.back.function = to.back, to.there
		r.adopt(to)
	}
	v := &r.between
	*v = preserve.Versions{
		Arena: r.Arena, There: &r.there, Back: &r.back, Source: source, Target: target, Rules: r.of.fingerprint, FrozenStatus: r.of.ruleset.RefusesStatus,
	}
	ofTarget, ofSource := &r.data[to.index], &r.data[from.index]
	r.judged = ofTarget.Entries
	root, ofTarget.Entries, ofSource.Entries = v.Convert(root, ofTarget.Entries, ofSource.Entries)
	if from.there != nil {
		r.discardShared(from)
	}
	r.NewRun()
	return r.With(root, "apiVersion", r.NewText(r.of.ruleset.Group+"/"+to.name))
}
