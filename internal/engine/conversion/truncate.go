// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
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

// token returns the signature of truncated forms at a version of a resource, nil without a key.
func (t *Truncating) token(resource, version string) []byte {
	if t == nil || t.Key == "" {
		return nil
	}
	const digits = 32
	sum := hmac.New(sha256.New, []byte(t.Key))
	sum.Write([]byte("truncated\n" + resource + "\n" + version))
	return []byte(hex.EncodeToString(sum.Sum(nil))[:digits])
}

// truncates reports whether conversions to a version may answer with truncated forms.
func (p *Ruleset) truncates(version string) bool {
	t := p.Truncating
	return t != nil && t.Key != "" && !t.RefuseOnly && !p.DropOverflow && !slices.Contains(t.Except, version)
}

var (
	nameOmitted = newName("omitted")
	nameCount   = newName("count")
	nameBytes   = newName("bytes")

	annotationsPath = Path{"metadata", "annotations"}.segments()
)

// truncating is the truncation of one object.
type truncating struct {
	*step
	annotations *node
	parts       []truncated
	// room is the number of bytes left for the values of all parts.
	room int
}

// truncated is the preserved data of one version, and what is omitted from it.
type truncated struct {
	*version
	preserved
	// size is the size of the complete annotation, in bytes.
	size int
	// omits marks the omitted entries, by index.
	omits []bool
	// others are the names of omitted annotations.
	others []string
	// omitsText is true if unreadable text is omitted.
	omitsText bool
}

// truncate omits what the annotations of a converted object have no room for, if that is allowed.
// from is the version of the original object.
func (c *Converter) truncate(s *step, root *node, from, to *version) {
	annotations := root.find(annotationsPath)
	if !s.truncates || annotations == nil || withinLimit(annotations) {
		return
	}
	t := &truncating{step: s, annotations: annotations}
	t.takeParts(c.versions, from)
	t.makeRoom()
	t.choose()
	s.outcome.PreservedBytes, s.outcome.Omitted = 0, &Omitted{Version: t.parts[0].name, At: to.name}
	for i := range t.parts {
		t.put(&t.parts[i], to)
	}
}

// withinLimit reports whether the API server accepts annotations of this size.
func withinLimit(annotations *node) bool {
	return quotedSizeOf(annotations) <= MaxAnnotations || sizeOf(annotations) <= MaxAnnotations
}

// takeParts removes the annotations with preserved data. The first part is that of the version
// with the most data.
func (t *truncating) takeParts(versions []*version, from *version) {
	for _, v := range versions {
		text := t.annotation(t.annotations, &v.annotation)
		if text == nil {
			continue
		}
		part := truncated{version: v, size: len(text)}
		if t.readAnnotation(text, &part.preserved) {
			part.omits = make([]bool, len(part.entries))
			t.parts = append(t.parts, part)
			t.annotations.remove(&v.annotation)
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
	t.room = MaxAnnotations - sizeOf(t.annotations)
	for i := range t.parts {
		t.room -= len(t.parts[i].annotation.text) + markerSize
	}
	for t.room < 0 {
		largest, size := (*node)(nil), -1
		for m := t.annotations.first; m != nil; m = m.next {
			if its := textSize(m.key) + textSize(m.text); its > size {
				largest, size = m, its
			}
		}
		if largest == nil {
			return // cannot happen: there is room for the markers alone
		}
		name := newName(largest.decodedName())
		t.parts[0].others = append(t.parts[0].others, name.text)
		t.annotations.remove(&name)
		t.room += size
	}
}

// item is an entry, or unreadable text, that may be omitted.
type item struct{ part, entry, size int }

// choose keeps the smallest items that fit, and omits the others.
func (t *truncating) choose() {
	var items []item
	for i := range t.parts {
		part := &t.parts[i]
		for j := range part.entries {
			items = append(items, item{i, j, part.entries[j].size()})
		}
		if part.unreadable != nil {
			items = append(items, item{i, -1, len(appendQuoted(nil, part.unreadable)) + len(nameUnreadable.quoted)})
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

// size is an upper bound for the bytes that the entry takes in an annotation.
func (e *entry) size() int {
	// The pointer occurs up to three times, with quotes, a colon and a comma, and each member that
	// contains it has a name and brackets.
	const times, around = 3, 24
	return times*(len(appendQuoted(nil, e.pointer))+around) + len(e.value) + len(e.images) + len(e.anchor)
}

// put writes the annotation of a part, with a marker if something is omitted.
func (t *truncating) put(part *truncated, to *version) {
	var rest preserved
	var omitted entries
	for i, e := range part.entries {
		if part.omits[i] {
			omitted = append(omitted, e)
		} else {
			rest.entries = append(rest.entries, e)
		}
	}
	if !part.omitsText {
		rest.unreadable = part.unreadable
	}
	text := t.pack(t.appendPreserved(rest, nil))
	if part.omitsText || len(omitted)+len(part.others) > 0 {
		text = t.addMarker(text, part, omitted, to)
	}
	t.outcome.PreservedBytes += len(text)
	t.annotations.set(&part.annotation, t.quote(text))
}

// addMarker adds the marker to an annotation. It is outside of the compressed part, so that
// readers can see it.
func (t *truncating) addMarker(text []byte, part *truncated, omitted entries, to *version) []byte {
	head := []byte(`{"format":` + preservedFormat)
	sum := sha256.New()
	var places [][]byte
	for i := range omitted {
		places = append(places, omitted[i].pointer)
		sum.Write(omitted[i].pointer)
		sum.Write(omitted[i].value)
	}
	for _, name := range part.others {
		places = append(places, []byte("/metadata/annotations/"+escapePointer(name)))
	}
	if part.omitsText {
		places = append(places, []byte("/metadata/annotations/"+escapePointer(part.annotation.text)))
		sum.Write(part.unreadable)
	}
	out := t.outcome.Omitted
	out.Count += len(places)
	out.Bytes += part.size
	marked := append(slices.Clone(head), `,"omitted":{"count":`...)
	marked = strconv.AppendInt(marked, int64(len(places)), 10)
	marked = append(marked, `,"bytes":`...)
	marked = strconv.AppendInt(marked, int64(part.size), 10)
	marked = append(marked, `,"fields":[`...)
	start := len(marked)
	for _, place := range places[:min(len(places), maxDropped)] {
		quoted := appendQuoted(nil, place)
		if len(marked)-start+len(quoted) > markedFields {
			continue
		}
		if len(marked) > start {
			marked = append(marked, ',')
		}
		marked = append(marked, quoted...)
		out.Fields = append(out.Fields, part.pathOf(place))
	}
	marked = append(marked, `],"digest":"`...)
	marked = append(marked, hex.EncodeToString(sum.Sum(nil)[:8])...)
	marked = append(append(append(marked, `","token":"`...), to.token...), `"}`...)
	return append(marked, bytes.TrimPrefix(text, head)...)
}

// refuseTruncated refuses to convert a truncated form. One without a valid token is unreadable
// text, and stays in its annotation.
func (c *Converter) refuseTruncated(s *step, root *node, from *version) error {
	if len(from.token) == 0 {
		return nil
	}
	annotations := root.find(annotationsPath)
	if annotations == nil {
		return nil
	}
	for m := annotations.first; m != nil; m = m.next {
		if bytes.HasPrefix(m.key, quotedPrefix) && bytes.Contains(m.text, from.token) {
			return c.truncatedError(s, m, from)
		}
	}
	return nil
}

var quotedPrefix = []byte(`"` + PreservedPrefix)
