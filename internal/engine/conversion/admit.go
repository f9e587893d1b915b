// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Admit returns an error if an object must not be stored: it is a truncated form, or it could only
// be converted to another version as a truncated form. Objects of versions that the ruleset does
// not know are admitted, because a converter never truncates them.
func (c *Converter) Admit(text []byte, stop func(memory int64) bool) error {
	from, err := c.stored(text, stop)
	if err != nil || from == nil {
		return err
	}
	return c.convertible(text, from, stop)
}

// stored returns the version of an object, nil if it may be stored whatever it has, and an error if it is a
// truncated form.
func (c *Converter) stored(text []byte, stop func(memory int64) bool) (from *version, err error) {
	r := newRun(c, stop)
	defer r.Free()
	err = r.limit(func() (err error) {
		var root *tree.Node
		if root, from, err = r.readVersion(text); err != nil {
			return err
		}
		if metadata := root.Get("metadata"); metadata.Get("deletionTimestamp") != nil && !isHeld(metadata) {
			from = nil // the deletion finishes: the last finalizer is gone
			return nil
		}
		return r.refuseMarked(root, from)
	})
	if CauseOf(err) == CauseUnknownVersion {
		return nil, nil
	}
	return from, err
}

// AdmitDeletion returns an error if an object must not be deleted at a version: it is a truncated
// form there, and the deletion would store it, with a deletion timestamp, until finalizers are
// gone. waits is true if the deletion itself adds a finalizer.
func (c *Converter) AdmitDeletion(text []byte, waits bool, stop func(memory int64) bool) error {
	r := newRun(c, stop)
	defer r.Free()
	return r.limit(func() error {
		root, from, _ := r.readVersion(text) // an unreadable object may be deleted
		if from == nil || !waits && !isHeld(root.Get("metadata")) {
			return nil
		}
		return r.refuseTruncated(root, from)
	})
}

// OmittedIn returns what was omitted from a truncated form, nil if nothing was or if that is
// unknown. Any converter with the same key may have truncated the object.
func (c *Converter) OmittedIn(text []byte) *Omitted {
	r := newRun(c, nil)
	defer r.Free()
	err := r.limit(func() error {
		root, from, err := r.readVersion(text)
		if err != nil {
			return err
		}
		return r.refuseTruncated(root, from)
	})
	if truncated, is := errors.AsType[*TruncatedError](err); is {
		return truncated.Omitted
	}
	return nil
}

// OmittedBy is OmittedIn for the version and the annotations of an object.
func (c *Converter) OmittedBy(version string, annotations map[string]string) *Omitted {
	text, err := json.Marshal(map[string]any{
		"apiVersion": c.ruleset.Group + "/" + version, "kind": c.ruleset.Kind, "metadata": map[string]any{"annotations": annotations},
	})
	if err != nil {
		return nil // cannot happen: annotations are strings
	}
	return c.OmittedIn(text)
}

// readVersion reads a text that consists of one object of the kind.
func (r *conversionRun) readVersion(text []byte) (*tree.Node, *version, error) {
	root, _, err := r.readWhole(text)
	if err != nil {
		return nil, nil, failf(CauseInvalidJSON, "%v", err)
	}
	from, err := r.of.versionOf(root)
	return root, from, err
}

// isHeld reports whether an object has finalizers.
func isHeld(metadata *tree.Node) bool {
	finalizers := metadata.Get("finalizers")
	return finalizers != nil && !finalizers.Is(tree.Null) && (!finalizers.Is(tree.List) || finalizers.Len() > 0)
}

// convertible returns an error if the object has no complete form in one of the other versions.
func (c *Converter) convertible(text []byte, from *version, stop func(memory int64) bool) error {
	var buffer []byte
	for _, to := range c.versions {
		if to == from {
			continue
		}
		r := newRun(c, stop)
		out, err := r.convert(buffer[:0], text, to.name, r.readWhole)
		omitted := r.outcome.Omitted
		r.Free()
		switch {
		case err != nil:
			return err
		case omitted != nil:
			return &TooLargeError{omitted}
		}
		buffer = out
	}
	return nil
}

// refuseMarked refuses an object if an annotation of the resource marks it as a truncated form, no
// matter who wrote it.
func (r *conversionRun) refuseMarked(root *tree.Node, from *version) error {
	for _, m := range root.At(annotationsPath).Members() {
		if !m.Value.Is(tree.String) || !r.of.isOurs(m.Name) {
			continue
		}
		if from.token != "" && bytes.Contains(m.Value.JSON(), []byte(from.token)) || r.marker(m.Value) != nil {
			return r.truncatedError(m, from)
		}
	}
	return nil
}

// marker returns the marker in an annotation, nil if there is none.
func (r *conversionRun) marker(annotation *tree.Node) *tree.Node {
	if !strings.Contains(annotation.Text(), "omitted") {
		return nil
	}
	data, err := r.Read([]byte(annotation.Text()))
	if err != nil || string(jsonOf(data.Get("format"))) != strconv.Itoa(preserve.Format) {
		return nil
	}
	return data.Get("omitted")
}

// isOurs reports whether the annotation belongs to the resource. It misses shortened names of
// versions that the ruleset does not have.
func (c *Converter) isOurs(annotation string) bool {
	if !strings.HasPrefix(annotation, PreservedPrefix) {
		return false
	}
	return strings.HasSuffix(annotation, "."+c.ruleset.CRD) || slices.ContainsFunc(c.versions, func(v *version) bool { return v.annotation == annotation })
}

// truncatedError reads the marker of a truncated form.
func (r *conversionRun) truncatedError(annotation tree.Member, at *version) error {
	refused := &TruncatedError{Annotation: annotation.Name}
	i := slices.IndexFunc(r.of.versions, func(v *version) bool { return v.annotation == annotation.Name })
	marker := r.marker(annotation.Value)
	if i < 0 || !marker.Is(tree.Object) {
		return refused
	}
	size, err := strconv.Atoi(string(jsonOf(marker.Get("bytes"))))
	count, bad := strconv.Atoi(string(jsonOf(marker.Get("count"))))
	fields := marker.Get("fields")
	if err != nil || bad != nil || fields == nil {
		return refused
	}
	refused.Omitted = &Omitted{Version: r.of.versions[i].name, At: at.name, Count: count, Bytes: size}
	for _, pointer := range fields.Elems()[:min(len(fields.Elems()), maxDropped)] {
		if place, ok := preserve.ParsePointer(pointer.Text()); ok {
			refused.Fields = append(refused.Fields, r.of.versions[i].pathOf(place).String())
		}
	}
	return refused
}

// jsonOf returns a value as JSON, empty for a missing one.
func jsonOf(n *tree.Node) []byte {
	if n == nil {
		return nil
	}
	return n.JSON()
}
