// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "encoding/binary"

// name is the name of a member, prepared for being found and written.
type name struct {
	text string
	// quoted is the text as a JSON string.
	quoted []byte
	// mark is that of the quoted text.
	mark uint64
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

// markOf tells most names apart at a glance: how they begin, how they end, and
// how long they are.
func markOf(quoted []byte) uint64 {
	const half = 4
	length := len(quoted)
	if length < half {
		return uint64(length)
	}
	begin, end := binary.LittleEndian.Uint32(quoted), binary.LittleEndian.Uint32(quoted[length-half:])
	return uint64(begin) | uint64(end)<<32 ^ uint64(length)
}

// steps is a Path, prepared for being followed.
type steps []name

func (p Path) steps() steps {
	prepared := make(steps, len(p))
	for i, text := range p {
		prepared[i] = newName(text)
	}
	return prepared
}

// split is that of Path.
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
