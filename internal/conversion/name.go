// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "encoding/binary"

// mark is a part of a name.
type mark uint64

// name is the name of a member, prepared for being found and written.
type name struct {
	text string
	// quoted is the text as a JSON string.
	quoted []byte
	// mark is that of the quoted text.
	mark mark
}

func newName(text string) name {
	quoted := appendQuoted(nil, text)
	return name{text, quoted, markOf(quoted)}
}

// The names that every object has.
var (
	nameAPIVersion  = newName("apiVersion")
	nameKind        = newName("kind")
	nameMetadata    = newName("metadata")
	nameName        = newName("name")
	nameNamespace   = newName("namespace")
	nameUID         = newName("uid")
	nameAnnotations = newName("annotations")
)

// marked is how long a quoted name may be for its mark and its length to tell it
// apart from any other.
const marked = 8

// markOf tells most names apart at a glance, by how they begin, how they end and
// how long they are, and orders them by how they begin.
func markOf(quoted []byte) mark {
	const half, bits = marked / 2, 8
	length := len(quoted)
	if length < half {
		return mark(quoted[1]) << ((2*half - 2) * bits)
	}
	begin, end := binary.BigEndian.Uint32(quoted), binary.LittleEndian.Uint32(quoted[length-half:])
	return mark(begin)<<(half*bits) | mark(end) ^ mark(length)
}

// before reports whether a name begins with less than another.
func (m mark) before(other mark) bool { return m>>32 < other>>32 }

// steps is a Path, prepared for being followed.
type steps []name

func (p Path) steps() steps {
	prepared := make(steps, len(p))
	for i, text := range p {
		prepared[i] = newName(text)
	}
	return prepared
}

// names are the path.
func (s steps) names() Path {
	path := make(Path, len(s))
	for i := range s {
		path[i] = s[i].text
	}
	return path
}

// split is the path of the object that holds a field, and the field's name.
func (s steps) split() (parent steps, last *name) { return s[:len(s)-1], &s[len(s)-1] }

// has is that of Path.
func (s steps) has(prefix steps) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range prefix {
		if s[i].text != prefix[i].text {
			return false
		}
	}
	return true
}
