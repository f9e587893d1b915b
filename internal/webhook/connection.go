// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// listener accepts connections while there is room for them. One address has at most as many as there is still
// room for: half of all, if it is alone, and less for each of several. So there is always room for another
// address. API servers have few addresses, and a connection for each call at the same time.
type listener struct {
	net.Listener
	// tls is nil for connections without TLS.
	tls *tls.Config
	// limit returns how many connections there may be.
	limit func() int64
	log   logr.Logger

	mu        sync.Mutex
	open      int64
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
		from := l.admit(accepted.RemoteAddr())
		if from == nil {
			accepted.Close()
			continue
		}
		if l.tls != nil {
			accepted = tls.Server(accepted, l.tls)
		}
		return &connection{Conn: accepted, listener: l, from: from}, nil
	}
}

// admit counts a connection, and returns nil if there is no room for it.
func (l *listener) admit(remote net.Addr) *address {
	host, _, _ := net.SplitHostPort(remote.String()) // it is empty for what is no address of TCP
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.addresses[host]
	if from == nil {
		from = &address{name: host, bodies: holder{part: partOfAddress}}
	}
	if limit := l.limit(); from.connections >= limit-l.open-1 {
		l.log.V(1).Info("Connection refused", "address", host, "connections", from.connections, "all", l.open, "limit", limit)
		return nil
	}
	l.addresses[host] = from
	from.connections++
	l.open++
	return from
}

// connections returns the number of connections.
func (l *listener) connections() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// connection is a connection whose first request may come late, and once it has begun, not slowly. net/http would
// limit the time from the connection on, and closes one that an API server may still use.
type connection struct {
	net.Conn
	listener *listener
	from     *address
	used     bool
	closed   sync.Once
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
	c.closed.Do(func() {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.listener.open--
		if c.from.connections--; c.from.connections == 0 {
			delete(c.listener.addresses, c.from.name)
		}
	})
	return c.Conn.Close()
}

// addressKey is the key of the address in the context of a call.
type addressKey struct{}

// withAddress adds the address of a connection to the context of its calls.
func withAddress(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, addressKey{}, c.(*connection).from)
}

// addressOf returns the address of a call, nil if it is unknown.
func addressOf(ctx context.Context) *address {
	from, _ := ctx.Value(addressKey{}).(*address)
	return from
}
