// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command opentelemetry converts objects with the conversion functions of the OpenTelemetry Operator. It
// is a module and a process of its own, because these functions need an older controller-runtime than
// the tests around it.
//
// It reads requests as JSON from its standard input, and writes an answer to each to its standard
// output.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/open-telemetry/opentelemetry-operator/apis/v1alpha1"
	"github.com/open-telemetry/opentelemetry-operator/apis/v1beta1"
)

// request is an object of a version, to convert to a version. If that is the same version, the object is
// only read and written by the Go type.
type request struct {
	From, To string
	Object   json.RawMessage
}

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	decoder, written := json.NewDecoder(in), bufio.NewWriter(out)
	for {
		var asked request
		if err := decoder.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		var answered answer
		object, err := convert(&asked)
		if answered.Object = object; err != nil {
			answered = answer{Error: err.Error()}
		}
		if err := errors.Join(json.NewEncoder(written).Encode(answered), written.Flush()); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

func convert(asked *request) (any, error) {
	var spoke v1alpha1.OpenTelemetryCollector
	var hub v1beta1.OpenTelemetryCollector
	source := any(&spoke)
	if asked.From == "v1beta1" {
		source = &hub
	}
	decoder := json.NewDecoder(bytes.NewReader(asked.Object))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(source); err != nil {
		return nil, fmt.Errorf("reading an object of %s: %w", asked.From, err)
	}
	switch {
	case asked.From == asked.To:
		return source, nil
	case asked.To == "v1beta1":
		return &hub, spoke.ConvertTo(&hub)
	}
	return &spoke, spoke.ConvertFrom(&hub)
}
