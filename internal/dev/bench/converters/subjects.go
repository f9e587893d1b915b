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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
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

// returnedMetadata are the members of metadata that an API server takes from a response, or
// compares with the request. It restores all others from the object that it sent, so a converter
// may omit them: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go,
// validateConvertedObject and restoreObjectMeta.
var returnedMetadata = map[string]bool{"name": true, "namespace": true, "uid": true, "labels": true, "annotations": true}

// agree returns the first difference between the responses of the subjects to a body. Converters
// must return the same objects, and the other subjects the body itself.
func agree(b body, all []subject) error {
	var want []any
	var first string
	for _, s := range all {
		c := newClient(s.handler, b.text)
		c.call()
		if !s.converts {
			if c.answer.code != http.StatusOK || !bytes.Equal(c.answer.text, b.text) {
				return fmt.Errorf("%s: %s does not send the body back: %d %.200s", b.name, s.name, c.answer.code, c.answer.text)
			}
			continue
		}
		objects, err := b.objectsOf(&c.answer)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", b.name, s.name, err)
		}
		if want == nil {
			want, first = objects, s.name
		}
		if !reflect.DeepEqual(want, objects) {
			return fmt.Errorf("%s: what %s (-) and %s (+) make of it differs:\n%s", b.name, first, s.name, cmp.Diff(want, objects))
		}
	}
	return nil
}

// objectsOf returns the objects of a response as an API server reads them.
func (b body) objectsOf(a *answer) ([]any, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(a.text, &review); err != nil || a.code != http.StatusOK || review.Response == nil {
		return nil, fmt.Errorf("the answer is no ConversionReview: %d %.200s", a.code, a.text)
	}
	response := review.Response
	switch {
	case review.Kind != "ConversionReview" || review.APIVersion != apiextensionsv1.SchemeGroupVersion.String():
		return nil, fmt.Errorf("the answer is a %s of %s", review.Kind, review.APIVersion)
	case response.UID != b.uid:
		return nil, fmt.Errorf("the answer is for uid %q, not %q", response.UID, b.uid)
	case response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("the conversion failed: %s", response.Result.Message)
	case len(response.ConvertedObjects) != b.objects:
		return nil, fmt.Errorf("the answer has %d objects, not %d", len(response.ConvertedObjects), b.objects)
	}
	objects := make([]any, 0, b.objects)
	for _, raw := range response.ConvertedObjects {
		object, err := b.objectOf(raw.Raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// objectOf returns what an API server takes of a converted object.
func (b body) objectOf(text []byte) (map[string]any, error) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("an object of the answer is not readable: %w", err)
	}
	if object.GetAPIVersion() != b.desired {
		return nil, fmt.Errorf("an object of the answer is in %v, not in %s", object.GetAPIVersion(), b.desired)
	}
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("an object of the answer has no metadata: %.200s", text)
	}
	maps.DeleteFunc(metadata, func(name string, _ any) bool { return !returnedMetadata[name] })
	return object.Object, nil
}
