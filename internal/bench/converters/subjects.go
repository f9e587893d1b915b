// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// Subjects that ratios refer to.
const (
	Ours     = "conversion-operator"
	Typed    = "controller-runtime, Go types"
	floorOwn = "read, check, write: own scanner"
)

// rulesetHash is part of Path, at which handlers are called. Only ours uses it.
const (
	rulesetHash = "bench"
	Path        = webhook.ConvertPath + "/" + rulesetHash
)

// subject is a handler to measure.
type subject struct {
	name    string
	handler http.Handler
	// converts is false for a handler that sends the body back.
	converts bool
}

// NewOurs returns the handler of a converter pod with the rules of the kind in a group.
func NewOurs(group string) (http.Handler, error) {
	ruleset, err := newRuleset(group)
	if err != nil {
		return nil, err
	}
	converter, err := conversion.NewConverter(ruleset)
	return webhook.NewHandler([]webhook.Ruleset{{
		CRD: ruleset.CRD, Group: ruleset.Group, Kind: ruleset.Kind, Hash: rulesetHash, Pairs: ruleset.Pairs(), Converter: converter,
	}}, webhook.HandlerOptions{}), err
}

func subjects() ([]subject, error) {
	ours, err := NewOurs(group)
	if err != nil {
		return nil, err
	}
	typed, err := NewTyped(group)
	if err != nil {
		return nil, fmt.Errorf("make the handler of controller-runtime: %w", err)
	}
	all := []subject{{Ours, ours, true}, {Typed, typed, true}, {"unstructured, edits of maps", http.HandlerFunc(unstructuredHandler), true}}
	for _, floor := range floors {
		all = append(all, subject{floor.name, floorHandler(floor.check), false})
	}
	return all, nil
}

// floors are checks of a body, from none at all to the full check of a JSON library, and a walk
// over the members, the minimum for a converter around a JSON library.
var floors = []struct {
	name  string
	check func(text []byte) error
}{
	{"read, write", func([]byte) error { return nil }},
	{floorOwn, conversion.Valid},
	{"read, check, write: jsontext, duplicate names allowed", func(text []byte) error {
		return validIf(jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)))
	}},
	{"read, check, write: jsontext", func(text []byte) error { return validIf(jsontext.Value(text).IsValid()) }},
	{"read, walk, write: jsontext, duplicate names allowed", walk},
	{"read, check, write: encoding/json", func(text []byte) error { return validIf(json.Valid(text)) }},
}

func validIf(valid bool) error {
	if !valid {
		return errors.New("the body is not JSON")
	}
	return nil
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// walk reads names of members down to those of a spec in a review (request, list, object, spec), and
// skips the values there.
func walk(text []byte) error {
	const depth = 5
	decoder := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(decoder)
	// The decoder reads a buffer in place.
	decoder.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	for {
		skips := false
		if decoder.StackDepth() == depth {
			kind, read := decoder.StackIndex(depth)
			skips = kind == jsontext.KindBeginObject && read%2 == 1
		}
		var err error
		if skips {
			err = decoder.SkipValue()
		} else {
			_, err = decoder.ReadToken()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// floorHandler reads a body, checks it, and sends it back. It pools its memory.
func floorHandler(check func(text []byte) error) http.Handler {
	pool := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := pool.Get().(*bytes.Buffer)
		defer pool.Put(body)
		body.Reset()
		_, err := body.ReadFrom(r.Body)
		if err == nil {
			err = check(body.Bytes())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body.Bytes()) // an error means that the client is gone
	})
}

// client calls a handler repeatedly with one body, without allocations of its own.
type client struct {
	handler http.Handler
	request *http.Request
	text    []byte
	reader  *bytes.Reader
	body    io.ReadCloser
	answer  answer
}

func newClient(handler http.Handler, text []byte) *client {
	c := &client{handler: handler, text: text, reader: bytes.NewReader(text), answer: answer{header: http.Header{}}}
	c.body = io.NopCloser(c.reader)
	c.request, _ = http.NewRequestWithContext(context.Background(), http.MethodPost, Path, c.reader) // the URL is valid
	c.request.Header.Set("Content-Type", "application/json")
	return c
}

// call sends the request. The answer is valid until the next call.
func (c *client) call() {
	c.reader.Reset(c.text)
	c.request.Body = c.body
	clear(c.answer.header)
	c.answer.code, c.answer.text = http.StatusOK, c.answer.text[:0]
	c.handler.ServeHTTP(&c.answer, c.request)
}

// answer is a ResponseWriter that copies what the handler writes, as a network would.
type answer struct {
	header http.Header
	code   int
	text   []byte
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) { a.code = code }

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	a.text = append(a.text, text...)
	return len(text), nil
}
