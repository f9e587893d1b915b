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

// An object can have more to preserve than its annotations have room for. If its
// conversion failed, lists and watches of the whole kind would fail with it. So a
// reader gets a truncated form, which says that it is one. It must never be stored,
// and a converter does not know whether it converts for a reader or for etcd: it
// refuses to convert a truncated form, and where nothing is converted, admission
// refuses the write (admit.go).

const (
	// keptOfLarge bounds what a truncated form preserves, in bytes: small values are
	// of use to a reader, and all of them are not needed.
	preservedOfLarge = 64 << 10
	// markerSize bounds a marker, and markedFields what the fields take that it names.
	markerSize   = 1536
	markedFields = 1024
)

// Truncating allows conversions to answer with truncated forms. It belongs into a
// ruleset only while admission refuses to store them.
type Truncating struct {
	// Key signs truncated forms. A client without it cannot write an object that
	// looks like one, and that could not be converted.
	Key string `json:"key"`
	// RefuseOnly refuses truncated forms and makes none: other converters may still
	// make them, or have made them.
	RefuseOnly bool `json:"refuseOnly,omitempty"`
	// Except are versions to which nothing is truncated: such as the storage version,
	// if it has a scale. Who scales writes an object that admission does not see.
	Except []string `json:"except,omitempty"`
}

// token signs the truncated forms at a version of a resource.
func (s *Truncating) token(resource, version string) []byte {
	if s == nil || s.Key == "" {
		return nil
	}
	const digits = 32
	sum := hmac.New(sha256.New, []byte(s.Key))
	sum.Write([]byte("truncated\n" + resource + "\n" + version))
	return []byte(hex.EncodeToString(sum.Sum(nil))[:digits])
}

// truncates reports whether conversions to a version may answer with truncated forms.
func (p *Ruleset) truncates(version string) bool {
	s := p.Truncating
	return s != nil && s.Key != "" && !s.RefuseOnly && !p.DropOverflow && !slices.Contains(s.Except, version)
}

var (
	nameOmitted = newName("omitted")
	nameCount   = newName("count")
	nameBytes   = newName("bytes")

	annotationsPath = Path{"metadata", "annotations"}.segments()
)

// truncating is the rest out of one object.
type truncating struct {
	*step
	annotations *node
	parts       []truncated
	// room is the rest for the values of all parts.
	room int
}

// truncated is what is preserved of one version, and the rest out of that.
type truncated struct {
	*version
	preserved
	// size is what the annotation takes with everything in it, in bytes.
	size int
	// omits are those entries that are left out, by their indexes.
	omits []bool
	// others are the names of annotations that are left out.
	others []string
	// omitsText tells that unreadable text is left out.
	omitsText bool
}

// truncate leaves out what the annotations of a converted object have no room for,
// where that is allowed. From is the version that the object was at.
func (c *Converter) truncate(h *step, root *node, from, to *version) {
	annotations := root.find(annotationsPath)
	if !h.truncates || annotations == nil || withinLimit(annotations) {
		return
	}
	s := &truncating{step: h, annotations: annotations}
	s.takeParts(c.versions, from)
	s.makeRoom()
	s.choose()
	h.outcome.KeptBytes, h.outcome.Omitted = 0, &Omitted{Version: s.parts[0].name, At: to.name}
	for i := range s.parts {
		s.put(&s.parts[i], to)
	}
}

// withinLimit reports whether the API server accepts annotations.
func withinLimit(annotations *node) bool {
	return quotedSizeOf(annotations) <= MaxAnnotations || sizeOf(annotations) <= MaxAnnotations
}

// takeParts takes the annotations away in which something is preserved. The first
// part is that of the version with the most.
func (s *truncating) takeParts(versions []*version, from *version) {
	for _, v := range versions {
		text := s.annotation(s.annotations, &v.annotation)
		if text == nil {
			continue
		}
		part := truncated{version: v, size: len(text)}
		if s.read(text, &part.preserved) {
			part.omits = make([]bool, len(part.entries))
			s.parts = append(s.parts, part)
			s.annotations.remove(&v.annotation)
		}
	}
	if len(s.parts) == 0 {
		// Rules have made annotations that are too large.
		s.parts = append(s.parts, truncated{version: from})
	}
	slices.SortStableFunc(s.parts, func(a, b truncated) int { return cmp.Compare(b.size, a.size) })
}

// makeRoom leaves other annotations out, the largest first, as long as there is no
// room for markers.
func (s *truncating) makeRoom() {
	s.room = MaxAnnotations - sizeOf(s.annotations)
	for i := range s.parts {
		s.room -= len(s.parts[i].annotation.text) + markerSize
	}
	for s.room < 0 {
		largest, size := (*node)(nil), -1
		for m := s.annotations.first; m != nil; m = m.next {
			if its := textSize(m.key) + textSize(m.text); its > size {
				largest, size = m, its
			}
		}
		if largest == nil {
			return // cannot be: markers alone have room
		}
		name := newName(largest.label())
		s.parts[0].others = append(s.parts[0].others, name.text)
		s.annotations.remove(&name)
		s.room += size
	}
}

// item is something that may be left out: an entry, or unreadable text.
type item struct{ part, entry, size int }

// choose keeps the smallest entries, as far as there is room, and leaves the others out.
func (s *truncating) choose() {
	var items []item
	for i := range s.parts {
		part := &s.parts[i]
		for j := range part.entries {
			items = append(items, item{i, j, part.entries[j].size()})
		}
		if part.unreadable != nil {
			items = append(items, item{i, -1, len(appendQuoted(nil, part.unreadable)) + len(nameUnreadable.quoted)})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.size, b.size) })
	left := min(s.room, preservedOfLarge)
	for _, each := range items {
		left -= each.size
		switch part := &s.parts[each.part]; {
		case left >= 0:
		case each.entry < 0:
			part.omitsText = true
		default:
			part.omits[each.entry] = true
		}
	}
}

// size is never less than what the entry takes in an annotation, in bytes.
func (e *entry) size() int {
	// Its pointer is there up to three times, with quotes, a colon and a comma, and
	// each of the members that hold it has a name and brackets.
	const times, around = 3, 24
	return times*(len(appendQuoted(nil, e.pointer))+around) + len(e.value) + len(e.images) + len(e.anchor)
}

// put writes the annotation of a part, with a marker if it is not whole.
func (s *truncating) put(part *truncated, to *version) {
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
	text := s.pack(s.appendPreserved(rest, nil))
	if part.omitsText || len(omitted)+len(part.others) > 0 {
		text = s.mark(text, part, omitted, to)
	}
	s.outcome.KeptBytes += len(text)
	s.annotations.set(&part.annotation, s.quote(text))
}

// mark adds the marker to an annotation. It is outside of what is compressed, so that
// everyone sees it.
func (s *truncating) mark(text []byte, part *truncated, omitted entries, to *version) []byte {
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
	out := s.outcome.Omitted
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

// refuseTruncated refuses to convert a truncated form. One without a valid
// token is text that cannot be read, and stays in its annotation.
func (c *Converter) refuseTruncated(h *step, root *node, from *version) error {
	if len(from.token) == 0 {
		return nil
	}
	annotations := root.find(annotationsPath)
	if annotations == nil {
		return nil
	}
	for m := annotations.first; m != nil; m = m.next {
		if bytes.HasPrefix(m.key, quotedPrefix) && bytes.Contains(m.text, from.token) {
			return c.shortenedError(h, m, from)
		}
	}
	return nil
}

var quotedPrefix = []byte(`"` + PreservedPrefix)
