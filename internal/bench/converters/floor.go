// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

var errNotJSON = errors.New("the body is not JSON")

// floors are checks of a body, from none at all to the full check of a JSON library, and a walk
// over the members, the minimum for a converter around a JSON library.
var floors = []struct {
	name  string
	check func(text []byte) error
}{
	{floorCopy, func([]byte) error { return nil }},
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
		return errNotJSON
	}
	return nil
}

// walkDepth is the depth of the members of a spec in a review: request, list, object, spec.
const walkDepth = 5

// walk reads names of members down to walkDepth, and skips the values there.
func walk(text []byte) error {
	decoder := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(decoder)
	// The decoder reads a buffer in place.
	decoder.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	for {
		var err error
		if atDeepValue(decoder) {
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

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// atDeepValue reports whether the value of a member at walkDepth is next.
func atDeepValue(decoder *jsontext.Decoder) bool {
	if decoder.StackDepth() != walkDepth {
		return false
	}
	kind, read := decoder.StackIndex(walkDepth)
	return kind == jsontext.KindBeginObject && read%2 == 1
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
		// An error means that the client is gone.
		_, _ = w.Write(body.Bytes())
	})
}
