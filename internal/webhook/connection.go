// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// listener accepts connections while there is room for them. One address has at most as many as there is still
// room for: half of all, if it is alone, and less for each of several. If many addresses leave no room, another one
// gets that of a connection on which the pod waits for a client. API servers have few addresses, and a connection for
// each call at the same time.
type listener struct {
	net.Listener
	// tls is nil for connections without TLS.
	tls *tls.Config
	// limit returns how many connections there may be.
	limit func() int64
	log   logr.Logger

	mu        sync.Mutex
	open      map[*connection]bool
	addresses map[string]*address
}

// address is what the connections of one address hold.
type address struct {
	name        string
	connections int64
	bodies      holder
}

// Accept implements net.Listener. A connection for which there is no room is closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(accepted, accepted.RemoteAddr()); c != nil {
			return c, nil
		}
		accepted.Close()
	}
}

// admit makes room for a connection, and returns nil if there is none.
func (l *listener) admit(accepted net.Conn, remote net.Addr) *connection {
	host, _, _ := net.SplitHostPort(remote.String()) // it is empty for what is no address of TCP
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.addresses[host]
	if from == nil {
		from = &address{name: host, bodies: holder{part: partOfAddress}}
	}
	if open, limit := int64(len(l.open)), l.limit(); from.connections >= limit-open-1 {
		other := l.longestWait(from.connections)
		if other == nil {
			l.log.V(1).Info("Connection refused", "address", host, "connections", from.connections, "all", open, "limit", limit)
			return nil
		}
		l.log.V(1).Info("Connection closed in favor of another address", "address", other.from.name, "connections", other.from.connections, "other", host)
		l.remove(other)
		other.accepted.Close() // without TLS' message, for which a client might have no room
	}
	l.addresses[host] = from
	from.connections++
	c := &connection{Conn: accepted, accepted: accepted, listener: l, from: from}
	if l.tls != nil {
		c.Conn = tls.Server(accepted, l.tls)
	}
	c.waiting.Store(int64(clock()))
	l.open[c] = true
	return c
}

// longestWait returns the connection that has waited longest for its client, of an address with the most
// connections, and more than some; nil if there is none.
func (l *listener) longestWait(some int64) (longest *connection) {
	for c := range l.open {
		switch since := c.waiting.Load(); {
		case since == 0 || c.from.connections <= some:
		case longest == nil || c.from.connections > longest.from.connections,
			c.from.connections == longest.from.connections && since < longest.waiting.Load():
			longest = c
		}
	}
	return longest
}

// remove counts a connection no longer. The caller must hold l.mu.
func (l *listener) remove(c *connection) {
	if !l.open[c] {
		return
	}
	delete(l.open, c)
	if c.from.connections--; c.from.connections == 0 {
		delete(l.addresses, c.from.name)
	}
}

// connections returns the number of connections.
func (l *listener) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// connection is a connection whose first request may come late, and once it has begun, not slowly. net/http would
// limit the time from the connection on, and closes one that an API server may still use.
type connection struct {
	net.Conn
	// accepted is the connection without TLS.
	accepted net.Conn
	listener *listener
	from     *address
	used     bool
	// waiting is since when the pod waits for the client, by clock, and 0 while it works for it.
	waiting atomic.Int64
}

// Read implements net.Conn. net/http limits the time for the handshake, as for a header.
func (c *connection) Read(into []byte) (int, error) {
	if c.used {
		return c.Conn.Read(into)
	}
	c.used = true
	if secure, is := c.Conn.(*tls.Conn); is {
		if err := secure.HandshakeContext(context.Background()); err != nil {
			c.listener.log.V(1).Info("TLS handshake error", "address", c.from.name, "error", err.Error())
			return 0, err
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(into)
	_ = c.SetReadDeadline(time.Now().Add(readHeaderTimeout)) // it worked before
	return n, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// connectionKey is the key of the connection in the context of a call.
type connectionKey struct{}

// withConnection adds a connection to the context of its calls.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a call, nil if it is unknown.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
