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
	"maps"
	"net/http"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
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
	result := compile.Compile(Definition(group), Rules())
	ruleset := result.Ruleset
	if ruleset == nil {
		return nil, fmt.Errorf("the rules for %s are refused: %v %v", group, result.Errors, result.Missing)
	}
	converter, err := conversion.NewConverter(ruleset)
	return webhook.NewHandler([]webhook.Ruleset{{
		CRD: ruleset.CRD, Group: ruleset.Group, Kind: ruleset.Kind, Hash: rulesetHash, Pairs: ruleset.Pairs(), Converter: converter,
	}}, webhook.HandlerOptions{}), err
}

func subjects() ([]subject, error) {
	ours, err := NewOurs(group)
	typed, typedErr := NewTyped(group)
	all := []subject{{Ours, ours, true}, {Typed, typed, true}, {"unstructured, edits of maps", unstructuredHandler, true}}
	for _, floor := range floors {
		all = append(all, subject{floor.name, floorHandler(floor.valid), false})
	}
	return all, errors.Join(err, typedErr)
}

// floors are checks of a body, from none at all to the full check of a JSON library, and a walk
// over the members, the minimum for a converter around a JSON library.
var floors = []struct {
	name  string
	valid func(text []byte) bool
}{
	{"read, write", func([]byte) bool { return true }},
	{floorOwn, func(text []byte) bool { return conversion.Valid(text) == nil }},
	{"read, check, write: jsontext, duplicate names allowed", func(text []byte) bool { return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) }},
	{"read, check, write: jsontext", func(text []byte) bool { return jsontext.Value(text).IsValid() }},
	{"read, walk, write: jsontext, duplicate names allowed", walk},
	{"read, check, write: encoding/json", json.Valid},
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// walk reads names of members down to those of a spec in a review (request, list, object, spec), and
// skips the values there. It reports whether it came to the end.
func walk(text []byte) bool {
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
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// floorHandler reads a body, checks it, and sends it back. It pools its memory.
func floorHandler(valid func(text []byte) bool) http.Handler {
	pool := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := pool.Get().(*bytes.Buffer)
		defer pool.Put(body)
		body.Reset()
		if _, err := body.ReadFrom(r.Body); err != nil || !valid(body.Bytes()) {
			http.Error(w, "the body is not JSON", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body.Bytes()) // an error means that the client is gone
	})
}

// client calls a handler repeatedly with one body, without allocations of its own, and copies what the handler
// writes, as a network would. It is the http.ResponseWriter.
type client struct {
	handler http.Handler
	request *http.Request
	text    []byte
	reader  *bytes.Reader
	body    io.ReadCloser
	header  http.Header
	code    int
	answer  []byte
}

func newClient(handler http.Handler, text []byte) *client {
	c := &client{handler: handler, text: text, reader: bytes.NewReader(text), header: http.Header{}}
	c.body = io.NopCloser(c.reader)
	c.request, _ = http.NewRequestWithContext(context.Background(), http.MethodPost, Path, c.reader) // the URL is valid
	c.request.Header.Set("Content-Type", "application/json")
	return c
}

// call sends the request. The answer is valid until the next call.
func (c *client) call() {
	c.reader.Reset(c.text)
	c.request.Body = c.body // handlers replace it
	clear(c.header)
	c.code, c.answer = http.StatusOK, c.answer[:0]
	c.handler.ServeHTTP(c, c.request)
}

// Header implements http.ResponseWriter.
func (c *client) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *client) WriteHeader(code int) { c.code = code }

// Write implements http.ResponseWriter.
func (c *client) Write(text []byte) (int, error) {
	c.answer = append(c.answer, text...)
	return len(text), nil
}

// returnedMetadata are the members of metadata that an API server takes from a response, or
// compares with the request. It restores all others from the object that it sent, so a converter
// may omit them: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go,
// validateConvertedObject and restoreObjectMeta.
var returnedMetadata = map[string]bool{"name": true, "namespace": true, "uid": true, "labels": true, "annotations": true}

// agree returns the first difference between the responses of the subjects to a body. Converters
// must return the same objects, and the other subjects the body itself.
func agree(b body, all []subject) error {
	var want []any
	for _, s := range all {
		c := newClient(s.handler, b.text)
		c.call()
		if !s.converts {
			if c.code != http.StatusOK || !bytes.Equal(c.answer, b.text) {
				return fmt.Errorf("%s: %s does not send the body back: %d %.200s", b.name, s.name, c.code, c.answer)
			}
			continue
		}
		objects, err := b.objectsOf(c)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", b.name, s.name, err)
		}
		if want == nil {
			want = objects
		}
		if !reflect.DeepEqual(want, objects) {
			return fmt.Errorf("%s: what %s (-) and %s (+) make of it differs:\n%s", b.name, all[0].name, s.name, cmp.Diff(want, objects))
		}
	}
	return nil
}

// objectsOf returns the objects of a response as an API server reads them.
func (b body) objectsOf(c *client) (objects []any, err error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(c.answer, &review); err != nil || c.code != http.StatusOK || review.Response == nil {
		return nil, fmt.Errorf("the answer is no ConversionReview: %d %.200s", c.code, c.answer)
	}
	for _, raw := range review.Response.ConvertedObjects {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("an object of the answer is not readable: %w", err)
		}
		metadata, _ := object.Object["metadata"].(map[string]any)
		maps.DeleteFunc(metadata, func(name string, _ any) bool { return !returnedMetadata[name] })
		if object.GetAPIVersion() != b.desired || metadata == nil {
			return nil, fmt.Errorf("an object of the answer has no metadata, or is not in %s: %.200s", b.desired, raw.Raw)
		}
		objects = append(objects, object.Object)
	}
	review.Response.ConvertedObjects = nil
	want := apiextensionsv1.ConversionReview{TypeMeta: reviewType, Response: &apiextensionsv1.ConversionResponse{UID: b.uid, Result: reviews.Success}}
	if diff := cmp.Diff(want, review); diff != "" || len(objects) != b.objects {
		return nil, fmt.Errorf("the answer has %d objects, not %d, or is not a success (-want +got): %s", len(objects), b.objects, diff)
	}
	return objects, nil
}
