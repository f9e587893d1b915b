// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// An object can have more to preserve than its annotations have room for. If its conversion
// failed, lists and watches of all objects would fail with it. So readers get a truncated form,
// which is marked as such. It must never be stored. A converter does not know whether it converts
// for a reader or for etcd, so it refuses to convert a truncated form. Admission
// refuses writes that need no conversion (admit.go).

const (
	// preservedOfLarge limits the preserved data of a truncated form, in bytes: small values are
	// useful to readers, and no reader needs all of them.
	preservedOfLarge = 64 << 10
	// markerSize limits the size of a marker, and markedFields that of the fields that it names.
	markerSize   = 1536
	markedFields = 1024
)

// Truncating allows conversions to answer with truncated forms. A ruleset must only have it while
// admission refuses to store these.
type Truncating struct {
	// Key signs truncated forms, so that clients cannot write objects that look like one and
	// cannot be converted.
	Key string `json:"key"`
	// RefuseOnly refuses truncated forms and makes none: other converters may still make them, or
	// have made them.
	RefuseOnly bool `json:"refuseOnly,omitempty"`
	// Except are versions to which nothing is truncated, such as the storage version if it has a
	// scale subresource: a client that scales writes an object that admission does not see.
	Except []string `json:"except,omitempty"`
}

// token returns the signature of truncated forms at a version of a resource, empty without a key.
func (t *Truncating) token(resource, version string) string {
	if t == nil || t.Key == "" {
		return ""
	}
	const digits = 32
	sum := hmac.New(sha256.New, []byte(t.Key))
	sum.Write([]byte("truncated\n" + resource + "\n" + version))
	return hex.EncodeToString(sum.Sum(nil))[:digits]
}

// truncates reports whether conversions to a version may answer with truncated forms.
func (p *Ruleset) truncates(version string) bool {
	t := p.Truncating
	return t != nil && t.Key != "" && !t.RefuseOnly && !p.DropOverflow && !slices.Contains(t.Except, version)
}

// truncating is the truncation of one object.
type truncating struct {
	*conversionRun
	// root is the object without preserved data.
	root  *tree.Node
	parts []truncated
	// room is the number of bytes left for the values of all parts.
	room int
}

// truncated is the preserved data of one version, and what is omitted from it.
type truncated struct {
	*version
	preserve.Data
	// size is the size of the complete annotation, in bytes.
	size int
	// omits marks the omitted entries, by index.
	omits []bool
	// others are the names of omitted annotations.
	others []string
	// omitsText is true if unreadable text is omitted.
	omitsText bool
}

// truncate sets the annotations of an object without those of preserved data, and omits what they have no room for. from is
// the version of the original object.
func (r *conversionRun) truncate(root *tree.Node, from, to *version) *tree.Node {
	t := &truncating{conversionRun: r, root: root}
	t.addParts(from)
	t.makeRoom()
	t.choose()
	r.outcome.PreservedBytes, r.outcome.Omitted = 0, &Omitted{Version: t.parts[0].name, At: to.name}
	for i := range t.parts {
		t.put(&t.parts[i], to)
	}
	return t.root
}

// addParts adds the preserved data. The first part is that of the version with the most data.
func (t *truncating) addParts(from *version) {
	for _, v := range t.of.versions {
		data := t.data[v.index]
		if len(data.Entries) > 0 {
			t.parts = append(t.parts, truncated{version: v, Data: data, size: len(data.Encode(nil)), omits: make([]bool, len(data.Entries))})
		} else if data.Unreadable != "" {
			t.parts = append(t.parts, truncated{version: v, Data: data, size: len(data.Unreadable)})
		}
	}
	if len(t.parts) == 0 {
		// Rules have made annotations that are too large.
		t.parts = append(t.parts, truncated{version: from})
	}
	slices.SortStableFunc(t.parts, func(a, b truncated) int { return cmp.Compare(b.size, a.size) })
}

// makeRoom omits other annotations, the largest first, until there is room for the markers.
func (t *truncating) makeRoom() {
	t.room = MaxAnnotations - annotationsSize(t.root.At(annotationsPath))
	for i := range t.parts {
		t.room -= len(t.parts[i].annotation) + markerSize
	}
	others := slices.Clone(t.root.At(annotationsPath).Members())
	sizeOf := func(m tree.Member) int { return len(m.Name) + len(m.Value.Text()) }
	slices.SortStableFunc(others, func(a, b tree.Member) int { return cmp.Compare(sizeOf(b), sizeOf(a)) })
	for ; t.room < 0 && len(others) > 0; others = others[1:] {
		t.parts[0].others = append(t.parts[0].others, others[0].Name)
		t.root = t.WithAt(t.root, append(slices.Clip(annotationsPath), others[0].Name), nil)
		t.room += sizeOf(others[0])
	}
}

// item is an entry, or unreadable text, that may be omitted.
type item struct{ part, entry, size int }

// choose keeps the smallest items that fit, and omits the others.
func (t *truncating) choose() {
	var items []item
	for i := range t.parts {
		part := &t.parts[i]
		for j := range part.Entries {
			items = append(items, item{i, j, part.Entries[j].Size()})
		}
		if part.Unreadable != "" {
			items = append(items, item{i, -1, len(tree.Quote(nil, part.Unreadable)) + len(`,"unreadable":`)})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.size, b.size) })
	room := min(t.room, preservedOfLarge)
	for _, it := range items {
		room -= it.size
		switch part := &t.parts[it.part]; {
		case room >= 0:
		case it.entry < 0:
			part.omitsText = true
		default:
			part.omits[it.entry] = true
		}
	}
}

// put writes the annotation of a part, with a marker if something is omitted.
func (t *truncating) put(part *truncated, to *version) {
	var rest preserve.Data
	var omitted []preserve.Entry
	for i, e := range part.Entries {
		if part.omits[i] {
			omitted = append(omitted, e)
		} else {
			rest.Entries = append(rest.Entries, e)
		}
	}
	if !part.omitsText {
		rest.Unreadable = part.Unreadable
	}
	text := rest.Encode(nil)
	if part.omitsText || len(omitted)+len(part.others) > 0 {
		text = t.addMarker(text, part, omitted, to)
	}
	t.outcome.PreservedBytes += len(text)
	t.root = t.WithAt(t.root, append(slices.Clip(annotationsPath), part.annotation), t.NewTextOf(text))
}

// addMarker adds the marker to an annotation. It is outside of the compressed part, so that
// readers can see it.
func (t *truncating) addMarker(text []byte, part *truncated, omitted []preserve.Entry, to *version) []byte {
	sum := sha256.New()
	var places []preserve.Address
	for i := range omitted {
		e := &omitted[i]
		places = append(places, e.Place())
		sum.Write(preserve.Data{Entries: []preserve.Entry{*e}}.Encode(nil))
	}
	others := part.others
	if part.omitsText {
		others = append(slices.Clip(others), part.annotation)
		sum.Write([]byte(part.Unreadable))
	}
	for _, name := range others {
		places = append(places, preserve.Address{{Name: "metadata"}, {Name: "annotations"}, {Name: name}})
	}
	out := t.outcome.Omitted
	out.Count += len(places)
	out.Bytes += part.size
	head := []byte(`{"format":` + strconv.Itoa(preserve.Format))
	marked := fmt.Appendf(slices.Clone(head), `,"omitted":{"count":%d,"bytes":%d,"fields":[`, len(places), part.size)
	start := len(marked)
	for _, place := range places[:min(len(places), maxDropped)] {
		quoted := tree.Quote(nil, place.Pointer())
		if len(marked)-start+len(quoted) > markedFields {
			continue
		}
		if len(marked) > start {
			marked = append(marked, ',')
		}
		marked = append(marked, quoted...)
		out.Fields = append(out.Fields, part.pathOf(place).String())
	}
	marked = fmt.Appendf(marked, `],"digest":"%s","token":"%s"}`, hex.EncodeToString(sum.Sum(nil)[:8]), to.token)
	return append(marked, bytes.TrimPrefix(text, head)...)
}

// refuseTruncated refuses to convert a truncated form. One without a valid token is unreadable
// text, and stays in its annotation.
func (r *conversionRun) refuseTruncated(root *tree.Node, from *version) error {
	if from.token == "" {
		return nil
	}
	for _, m := range root.At(annotationsPath).Members() {
		if strings.HasPrefix(m.Name, PreservedPrefix) && bytes.Contains(m.Value.JSON(), []byte(from.token)) {
			return r.truncatedError(m, from)
		}
	}
	return nil
}
