// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"sync"
	"unsafe"
)

// Arena is the memory of the trees of one conversion. Nothing of them may be used after Free. It is not safe for
// concurrent use.
type Arena struct {
	Meter
	nodes   memory[Node]
	members memory[Member]
	elems   memory[*Node]
	text    memory[byte]
	rest    memory[more]
	reader  reader
	run     uint32
}

var arenas = sync.Pool{New: func() any { return &Arena{run: 1} }}

// NewArena returns an arena. The caller frees it.
func NewArena() *Arena { return arenas.Get().(*Arena) }

// maxKept is the largest size of an arena that is used again, in bytes: a very large object is rare.
const maxKept = 4 << 20

// Free makes the memory available for another conversion.
func (a *Arena) Free() {
	a.Meter = Meter{}
	kept := a.nodes.reset() + a.members.reset() + a.elems.reset() + a.text.reset() + a.rest.reset()
	// The stacks of the reader hold on to texts.
	clear(a.reader.members[:cap(a.reader.members)])
	clear(a.reader.elems[:cap(a.reader.elems)])
	if a.run = 1; kept <= maxKept {
		arenas.Put(a)
	}
}

// NewRun begins another run, and returns its number: values that were made before do not change any more.
func (a *Arena) NewRun() uint32 {
	a.run++
	return a.run
}

// memory hands out parts of large pieces.
type memory[T any] struct {
	pieces [][]T
	// piece is the one in use, of which a part is used.
	piece, used int
}

// The first piece has that many values, and each further one twice as many, up to a limit.
const firstPiece, maxDoublings = 128, 8

func (m *memory[T]) take(count int) []T {
	for m.piece < len(m.pieces) && m.used+count > len(m.pieces[m.piece]) {
		m.piece, m.used = m.piece+1, 0
	}
	if m.piece == len(m.pieces) {
		m.pieces = append(m.pieces, make([]T, max(count, firstPiece<<min(m.piece, maxDoublings))))
	}
	taken := m.pieces[m.piece][m.used : m.used+count : m.used+count]
	m.used += count
	return taken
}

// reset forgets all values, and returns the size of the memory.
func (m *memory[T]) reset() (bytes int) {
	var one T
	for i := range m.pieces {
		switch {
		case i < m.piece:
			clear(m.pieces[i])
		case i == m.piece:
			clear(m.pieces[i][:m.used])
		}
		bytes += len(m.pieces[i]) * int(unsafe.Sizeof(one))
	}
	m.piece, m.used = 0, 0
	return bytes
}

const nodeSize, memberSize = int(unsafe.Sizeof(Node{})), int(unsafe.Sizeof(Member{}))

func (a *Arena) node() *Node {
	a.Spend(1, nodeSize)
	return &a.nodes.take(1)[0]
}

func (a *Arena) takeMembers(count int) []Member {
	a.Spend(count/4, count*memberSize)
	return a.members.take(count)
}

// copyMembers copies members, and leaves room for some more.
func (a *Arena) copyMembers(members []Member, room int) []Member {
	return append(a.takeMembers(len(members) + room)[:0], members...)
}

// viewOf returns the bytes as a string that shares their memory.
func viewOf(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// bytesOf is the reverse of viewOf.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// Meter counts work and memory, and stops what takes too much of them. The zero value counts only.
type Meter struct {
	// Work is in units of about one node, and Memory in bytes.
	Work, Memory int64
	// check is told both, every now and then, and returns why to stop.
	check      func(work, memory int64) error
	workToTell int64
	memToTell  int64
}

// Work and memory between two checks.
const tellWork, tellMemory = 16 << 10, 256 << 10

// stop is what a Meter panics with: Limit recovers it. Everything between the two only makes
// values, so there is nothing to undo, and no caller could go on with a part of a value.
type stop struct{ err error }

// Limit calls what makes values, and stops it with the error that check returns for its work and its memory.
func (m *Meter) Limit(check func(work, memory int64) error, do func() error) (err error) {
	m.check, m.workToTell, m.memToTell = check, m.Work+tellWork, m.Memory+tellMemory
	defer func() {
		m.check = nil
		if caught := recover(); caught != nil {
			stopped, is := caught.(stop)
			if !is {
				panic(caught)
			}
			err = stopped.err
		}
	}()
	return do()
}

// Spend counts work and memory.
func (m *Meter) Spend(work, memory int) {
	m.Work += int64(work)
	m.Memory += int64(memory)
	if m.Work >= m.workToTell || m.Memory >= m.memToTell {
		m.tell()
	}
}

func (m *Meter) tell() {
	m.workToTell, m.memToTell = m.Work+tellWork, m.Memory+tellMemory
	if m.check == nil {
		return
	}
	if err := m.check(m.Work, m.Memory); err != nil {
		panic(stop{err})
	}
}

// Stop ends what Limit has called.
func (m *Meter) Stop(err error) { panic(stop{err}) }
