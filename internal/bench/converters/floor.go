// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

var errNotJSON = errors.New("the body is not JSON")

// floors are checks of a body, from the least to the most that a JSON library
// does when it is asked for nothing but a check.
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
	{"read, check, write: encoding/json", func(text []byte) error { return validIf(json.Valid(text)) }},
}

func validIf(valid bool) error {
	if !valid {
		return errNotJSON
	}
	return nil
}

// floorHandler reads a body, checks it, and sends it back. Its memory is pooled.
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
		// The client is gone if this fails; there is nobody left to tell.
		_, _ = w.Write(body.Bytes())
	})
}
