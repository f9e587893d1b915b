// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import "sync"

// The memory of a pod that its program and its rulesets leave has four parts: a half is for conversions, and a sixth
// each is for connections, for bodies and answers, and for garbage that is not collected yet. TestHostileBodies
// measures the highest memory.
const (
	// DefaultMemoryLimit is that of a converter pod.
	DefaultMemoryLimit int64 = 256 << 20
	// programBytes is the memory of a process without rulesets: TestAtRest prints it.
	programBytes = 24 << 20
	// connectionBytes is the memory of a connection: TLS, the header of a request, and the start of its body and
	// of its answer.
	connectionBytes = 64 << 10
	// firstBytes is the part of a body, and of an answer, that belongs to the connection. Most are shorter.
	firstBytes = 16 << 10
	// growth is how much larger the next buffer for a body may be than what has arrived.
	growth = 4
	// conversionBytes is the least memory of a conversion, which is more than a converter keeps for the next one, and
	// textBytes that for each byte of the body. The converter counts the memory for values, which it knows.
	conversionBytes, textBytes = 1 << 20, 3
	// leastPart and leastConnections are for a pod with too little memory.
	leastPart, leastConnections = 2 << 20, 64
	// growBytes is the least by which a conversion grows.
	growBytes = 512 << 10
)

// budget is memory that calls take when they need it, without a wait: what a client announces and does not
// send takes none. A call gets no more if others of its holders have more than a part of the rest. So no
// holder leaves others without memory, however many calls it has.
type budget struct {
	mu          sync.Mutex
	limit, used int64
}

// holder is for whom calls take memory: a kind, the address of a client, an object, or a namespace.
type holder struct {
	used int64
	// part of the rest, as a divisor, is what the holder may have.
	part int64
	// among are the holders of a kind by name, to which an object or a namespace belongs while it holds something.
	among map[string]*holder
	name  string
}

// The parts of holders. An object that fills its part leaves the larger part of that of its kind to others.
const partOfKind, partOfAddress, partOfNamespace, partOfObject = 1, 1, 2, 4

// claim is what a call holds.
type claim struct {
	held    int64
	holders []*holder
}

// hold changes what a call holds, and reports whether it may have that.
func (b *budget) hold(c *claim, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := bytes - c.held
	for _, holder := range c.holders {
		if more > 0 && !b.allows(holder, c.held, more) {
			return false
		}
	}
	if more > b.limit-b.used {
		return false
	}
	for _, holder := range c.holders {
		holder.used += more
	}
	b.used += more
	c.held = bytes
	return true
}

// allows reports whether a holder may have more than it has for others than this call.
func (b *budget) allows(h *holder, held, more int64) bool {
	return h.used <= held || h.used+more <= (b.limit-b.used-more)/h.part
}

// name makes the call that of an object, and reports whether it may hold what it has. An object without a
// namespace is one itself.
func (b *budget) name(c *claim, among map[string]*holder, namespace, object string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, part := range map[string]int64{namespace: partOfNamespace, namespace + "/" + object: partOfObject} {
		named := among[name]
		if named == nil {
			named = &holder{part: part, among: among, name: name}
			among[name] = named
		}
		if named.used > 0 && named.used+c.held > (b.limit-b.used)/part {
			return false
		}
		named.used += c.held
		c.holders = append(c.holders, named)
	}
	return true
}

// release returns all that a call holds.
func (b *budget) release(c *claim) {
	if c.held == 0 {
		c.holders = c.holders[:0]
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= c.held
	for _, holder := range c.holders {
		if holder.used -= c.held; holder.used == 0 && holder.among != nil {
			delete(holder.among, holder.name)
		}
	}
	*c = claim{holders: c.holders[:0]}
}
