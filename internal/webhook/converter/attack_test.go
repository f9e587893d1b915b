// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// asAttacker makes the test binary attack a pod: its value is an attack, in JSON.
const asAttacker = "CONVERSION_OPERATOR_ATTACK"

// attack is a number of random requests to a pod.
type attack struct {
	Address, Metrics, Hash string
	Seed                   uint64
	Count                  int
}

const (
	// attackers send requests at the same time, and each of them keeps some connections.
	attackers, keptConnections = 64, 8
	// patience is how long an attacker waits for an answer.
	patience = time.Second
)

// run sends the requests, and returns how many got which answer.
func (a attack) run() map[string]int {
	kinds := a.kinds()
	left, counts := make(chan int, a.Count), map[string]int{}
	for i := range a.Count {
		left <- i
	}
	close(left)
	var mu sync.Mutex
	var flood sync.WaitGroup
	for range attackers {
		flood.Go(func() {
			kept := make([]net.Conn, keptConnections)
			for i := range left {
				r := attacker{attack: a, Rand: rand.New(rand.NewPCG(a.Seed, uint64(i))), kinds: kinds} //nolint:gosec // no secrets
				answer := r.send()
				mu.Lock()
				counts[answer]++
				mu.Unlock()
				if r.connection == nil {
					continue
				}
				if r.often(10) { // it stays open
					at := r.IntN(keptConnections)
					kept[at], r.connection = r.connection, kept[at]
				}
				if r.connection != nil {
					r.connection.Close()
				}
			}
		})
	}
	flood.Wait()
	return counts
}

// kind is a hostile request with bodies of some sizes.
type kind struct {
	hostile
	bodies []string
}

// kinds are all requests. Their bodies are made once: that takes longer than what a pod does with them.
func (a attack) kinds() (kinds []kind) {
	all := requests(a.Hash)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		made := kind{hostile: all[name]}
		for _, size := range []int{100, 10 << 10, 60 << 10, 300 << 10} {
			made.bodies = append(made.bodies, made.body(size))
		}
		kinds = append(kinds, made)
	}
	return kinds
}

// attacker sends one request, of which all that is random follows from the seed.
type attacker struct {
	attack
	*rand.Rand
	kinds      []kind
	connection net.Conn
}

// often is true once in n times.
func (r *attacker) often(n int) bool { return r.IntN(n) == 0 }

func (r *attacker) one(of ...string) string { return of[r.IntN(len(of))] }

// pause is short, and seldom as long as a second.
func (r *attacker) pause() {
	time.Sleep(time.Duration(r.ExpFloat64() * r.ExpFloat64() * float64(20*time.Millisecond))) //nolint:forbidigo // it is slow
}

// send sends the request, and returns the status of the answer, or why there is none.
func (r *attacker) send() string {
	to, from := r.Address, net.IPv4(127, 0, 1, 1)
	if !r.often(4) { // many addresses
		from = net.IPv4(127, byte(1+r.IntN(250)), byte(r.IntN(250)), 1)
	}
	metrics := r.often(20)
	if metrics {
		to = r.Metrics
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if r.connection, err = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext(ctx, "tcp", to); err != nil {
		return "no connection"
	}
	_ = r.connection.SetDeadline(time.Now().Add(patience))
	switch {
	case r.often(30): // no TLS, or a part of it
		_, _ = io.WriteString(r.connection, r.one("", "GET / HTTP/1.1\r\n\r\n", "\x16", "\x16\x03\x01\x40\x00\x01", strings.Repeat("\x16\x03\x01\x00\x01", 10000)))
		r.pause()
		return "no request"
	case !metrics:
		secure := tls.Client(r.connection, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own server
		if secure.Handshake() != nil {
			return "no handshake"
		}
		r.connection = secure
	}
	if !r.write(r.message()) {
		return "not sent"
	}
	return r.answer()
}

// message is a request, and the part of it after which it is sent slowly.
func (r *attacker) message() (text []byte, part int) {
	kind := r.kinds[r.IntN(len(r.kinds))]
	body := []byte(kind.bodies[r.IntN(len(kind.bodies))])
	if r.often(50) {
		body = []byte(kind.body(int(webhook.DefaultMaxBodyBytes) - 1000))
	}
	body = r.change(body)
	method, path, contentType := kind.method, kind.path, "application/json"
	switch r.IntN(8) {
	case 0:
		method = r.one("PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT", "", "post", "POST POST", strings.Repeat("M", 6000))
	case 1:
		path = r.one("*", "", "//", "/../convert", path+"/..", path+"%00", path+"?"+strings.Repeat("a=b&", 500), "http://example.com"+path, strings.Repeat("/", 3000), webhook.MetricsPath, webhook.ReadyPath)
	case 2:
		contentType = r.one("", "text/plain", "application/cbor", "application/json; charset=utf-16", "multipart/form-data; boundary=x", ";", strings.Repeat("x/", 1000), "application/json\r\nContent-Type: text/plain")
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.%d\r\nContent-Type: %s\r\n", method, path, r.IntN(2), contentType)
	if !r.often(20) {
		head.WriteString("Host: " + r.one("a", "a", "a", "", strings.Repeat("h", 3000)) + "\r\n")
	}
	switch r.IntN(12) {
	case 0:
		head.WriteString("Content-Encoding: " + r.one("gzip", "identity", "deflate, gzip", "x") + "\r\n")
	case 1:
		head.WriteString("Expect: " + r.one("100-continue", "x") + "\r\n")
	case 2:
		for i := range r.IntN(600) {
			fmt.Fprintf(&head, "X-%d: %d\r\n", i, i)
		}
	case 3:
		head.WriteString(r.one("X: "+strings.Repeat("x", 100<<10), "Upgrade: h2c\r\nConnection: Upgrade", "Authorization: "+strings.Repeat("a", 2000), "no colon", ": ", "Cookie: \x00") + "\r\n")
	}
	body = r.frame(&head, body)
	text = append([]byte(head.String()+"\r\n"), body...)
	part = len(text)
	if r.often(3) {
		part = r.IntN(part)
	}
	return text, part
}

// change changes a body in one of many ways, or not at all.
func (r *attacker) change(body []byte) []byte {
	switch at := r.IntN(len(body) + 1); r.IntN(20) {
	case 0, 1, 2: // other letters
		const letters = "\"{}[],:\\0 \x00\xff\xc0"
		for range r.IntN(10) {
			body[r.IntN(len(body))] = letters[r.IntN(len(letters))]
		}
	case 3:
		return body[:at]
	case 4: // twice
		return append(body, body...)
	case 5: // a part twice
		return append(body[:at:at], body[r.IntN(at+1):]...)
	case 6: // members twice
		for _, member := range []string{"request", "kind", "apiVersion", "objects", "uid", "metadata"} {
			name := []byte(`"` + member + `":`)
			body = bytes.Replace(body, name, slices.Concat(name, []byte(r.one("null", "{}", "[]", `""`, "1e999", `{"objects":[{}]}`)+","), name), r.IntN(3))
		}
	case 7: // deep
		begin := r.one(`[`, `{"request":`, `{"request":{"objects":[`, `{"a":[`)
		return append([]byte(strings.Repeat(begin, 1+r.IntN(100_000))), body...)
	case 8:
		return append([]byte("\xef\xbb\xbf"), body...)
	case 9:
		var other []byte
		for _, unit := range utf16.Encode([]rune(string(body))) {
			other = append(other, byte(unit), byte(unit>>8))
		}
		return other
	case 10:
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, _ = writer.Write(body)
		_ = writer.Close()
		return packed.Bytes()
	case 11: // empty members
		empty := strings.Repeat(r.one(`"":"",`, `{},`, `[],`, `"":{},`), r.IntN(100_000))
		return slices.Concat(body[:at], []byte(empty), body[at:])
	}
	return body
}

// frame writes how long a body is, which may be wrong, and returns the body as it is sent.
func (r *attacker) frame(head *strings.Builder, body []byte) []byte {
	const chunked = "Transfer-Encoding: chunked\r\n"
	switch length := len(body); r.IntN(16) {
	case 0:
		head.WriteString(r.one("Content-Length: -1\r\n", "Content-Length: 9223372036854775807\r\n", "Content-Length: x\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n", "", "Transfer-Encoding: gzip, chunked\r\n", chunked+chunked))
	case 1:
		fmt.Fprintf(head, "Content-Length: %d\r\n", r.IntN(2*length+1))
	case 2, 3:
		head.WriteString(chunked + r.one("", "", "Content-Length: 1\r\n"))
		var chunks []byte
		for rest := body; len(rest) > 0; {
			n := min(1+r.IntN(r.IntN(length)+1), len(rest))
			chunks = append(fmt.Appendf(chunks, "%x%s\r\n", n, r.one("", "", ";"+strings.Repeat("x", 100))), rest[:n]...)
			chunks, rest = append(chunks, "\r\n"...), rest[n:]
		}
		return append(chunks, r.one("0\r\n\r\n", "0\r\nX: y\r\n\r\n", "-1\r\n", "ffffffffffffffff\r\n", "")...)
	default:
		fmt.Fprintf(head, "Content-Length: %d\r\n", length)
	}
	return body
}

// write sends a message, the rest after a part of it slowly, or not at all.
func (r *attacker) write(text []byte, part int) bool {
	if _, err := r.connection.Write(text[:part]); err != nil {
		return false
	}
	whole := r.often(2)
	for rest := text[part:]; len(rest) > 0; {
		r.pause()
		if !whole {
			return r.often(2) // it waits for an answer, or not
		}
		n := min(1+r.IntN(20_000), len(rest))
		if _, err := r.connection.Write(rest[:n]); err != nil {
			return false
		}
		rest = rest[n:]
	}
	if r.often(20) { // another request, before the first is answered
		_, err := r.connection.Write(text)
		return err == nil
	}
	return true
}

// answer reads an answer, or not, and returns its status.
func (r *attacker) answer() string {
	if r.often(20) {
		return "not read"
	}
	response, err := http.ReadResponse(bufio.NewReader(r.connection), nil)
	if err != nil {
		return "no answer"
	}
	defer response.Body.Close()
	if r.often(20) {
		r.pause()
		return "read in part"
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return fmt.Sprint(response.StatusCode)
}
