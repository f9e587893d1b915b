// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sort"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// PreservedPrefix is the prefix of annotations with preserved values.
const PreservedPrefix = "conversion-operator.io/"

const (
	// MaxAnnotations is the API server's limit for all annotations of an object together, names
	// and values, in bytes. The API server checks it in the answer of a conversion:
	// k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
	MaxAnnotations = 256 << 10
	// usualData is the room for a few preserved values, in bytes.
	usualData = 256
	// maxDropped is the number of dropped values that an annotation names.
	maxDropped = 20
)

// AnnotationName returns the name of the annotation with the preserved values of a version of a
// resource (plural.group). The name contains the resource, because controllers copy annotations
// between kinds. The part after the slash has at most 63 characters, which is the limit of
// Kubernetes: a longer one ends in the first 16 digits of its SHA-256.
func AnnotationName(resource, version string) string {
	const longest, digits = 63, 16
	name := version + "." + resource
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = name[:longest-digits-len("-")] + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return PreservedPrefix + name
}

// preservedData is the preserved data of an object, by the index of the version.
type preservedData []preserve.Data

var annotationsPath = Path{"metadata", "annotations"}

// takeData removes the annotations with preserved data from an object. Text that it cannot read stays in its annotation:
// users can write annotations, and later versions of this program write other formats.
func (r *conversionRun) takeData(root *tree.Node) *tree.Node {
	count := len(r.of.versions)
	r.data = slices.Grow(r.data[:0], count)[:count]
	annotations := root.At(annotationsPath)
	rest := annotations
	for i, v := range r.of.versions {
		text := annotations.Get(v.annotation)
		if !text.Is(tree.String) {
			continue
		}
		if read, ok := preserve.Decode(r.Arena, []byte(text.Text())); ok {
			read.Dropped = nil
			r.data[i] = read
			rest = r.With(rest, v.annotation, nil)
		}
	}
	switch {
	case rest == annotations:
		return root
	case rest.Len() == 0:
		rest = nil
	}
	return r.WithAt(root, annotationsPath, rest)
}

// putData sets the annotations with preserved data. from is the version that the object was converted from.
func (r *conversionRun) putData(root *tree.Node, from, to *version) (*tree.Node, error) {
	r.NewRun()
	if !root.Get("metadata").Is(tree.Object) {
		root = r.With(root, "metadata", r.NewObject())
	}
	truncates := r.of.ruleset.truncates(to.name)
	without := root
	for i, v := range r.of.versions {
		kept := &r.data[i]
		if len(kept.Entries) == 0 && kept.Unreadable == "" {
			continue
		}
		at := [...]string{"metadata", "annotations", v.annotation}
		if text := root.At(at[:]); text.Is(tree.String) {
			kept.Unreadable = text.Text()
			root, without = r.WithAt(root, at[:], nil), r.WithAt(without, at[:], nil)
		}
		others := annotationsSize(root.At(annotationsPath))
		text, fits := r.encode(*kept, MaxAnnotations-len(v.annotation)-others, truncates)
		if !fits && !truncates {
			return root, &OverflowError{Version: v.name, Preserved: len(text), Others: others}
		}
		r.outcome.PreservedBytes += len(text)
		root = r.WithAt(root, at[:], r.NewTextOf(text))
	}
	if truncates && annotationsSize(root.At(annotationsPath)) > MaxAnnotations {
		return r.truncate(without, from, to), nil
	}
	return root, nil
}

// encode returns the text of preserved data, and whether there is room for it, perhaps without its largest values.
func (r *conversionRun) encode(data preserve.Data, room int, complete bool) (text []byte, fits bool) {
	if len(data.Entries) == 0 {
		text = []byte(data.Unreadable)
	} else {
		text = data.Encode(r.Bytes(usualData))
	}
	if complete || len(text) <= room || !r.of.ruleset.DropOverflow || len(data.Entries) == 0 {
		return text, len(text) <= room
	}
	size := func(e preserve.Entry) int {
		if e.Value == nil {
			return 0
		}
		return len(e.Value.JSON())
	}
	largest := slices.Clone(data.Entries)
	slices.SortStableFunc(largest, func(a, b preserve.Entry) int { return cmp.Compare(size(b), size(a)) })
	without := func(count int) []byte {
		rest := preserve.Data{Entries: largest[count:], Unreadable: data.Unreadable}
		for _, e := range largest[:min(count, maxDropped)] {
			rest.Dropped = append(rest.Dropped, e.At.Pointer())
		}
		return rest.Encode(nil)
	}
	// The smallest number of values to drop: the text shrinks with each of them.
	count := 1 + sort.Search(len(largest)-1, func(i int) bool { return len(without(i+1)) <= room })
	r.outcome.DroppedValues += count
	text = without(count)
	return text, len(text) <= room
}

// annotationsSize is the size of annotations in bytes, as the API server counts it.
func annotationsSize(annotations *tree.Node) (total int) {
	for _, m := range annotations.Members() {
		total += len(m.Name) + len(m.Value.Text())
	}
	return total
}
