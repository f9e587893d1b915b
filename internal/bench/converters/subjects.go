// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// Subjects that ratios refer to.
const (
	ours      = "conversion-operator"
	typed     = "controller-runtime, Go types"
	floorOwn  = "read, check, write: own scanner"
	floorCopy = "read, write"
)

// subject is a handler to measure.
type subject struct {
	name    string
	handler http.Handler
	// converts is false for a handler that sends the body back.
	converts bool
}

func subjects() ([]subject, error) {
	plan, err := newRuleset(group)
	if err != nil {
		return nil, err
	}
	converter, err := conversion.NewConverter(plan)
	if err != nil {
		return nil, err
	}
	typedHandler, err := newTypedHandler(group)
	if err != nil {
		return nil, fmt.Errorf("making the handler of controller-runtime: %w", err)
	}
	all := []subject{
		{ours, webhook.NewHandler([]webhook.Ruleset{{CRD: plan.CRD, Group: plan.Group, Kind: plan.Kind, Hash: rulesetHash, Pairs: plan.Pairs(), Converter: converter}}, webhook.HandlerOptions{}), true},
		{typed, typedHandler, true},
		{"unstructured, edits of maps", http.HandlerFunc(unstructuredHandler), true},
	}
	for _, floor := range floors {
		all = append(all, subject{floor.name, floorHandler(floor.check), false})
	}
	return all, nil
}

// rulesetHash is part of the request path. Only our handler uses it.
const rulesetHash = "bench"

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
	// The URL is valid.
	c.request, _ = http.NewRequestWithContext(context.Background(), http.MethodPost, webhook.ConvertPath+"/"+rulesetHash, c.reader)
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
