// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command older converts objects with the conversion functions of projects that need an older
// controller-runtime than the tests around it: therefore it is a module and a process of its own.
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

	secretsv1alpha1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1alpha1"
	secretsv1beta1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1beta1"
	telemetryv1alpha1 "github.com/open-telemetry/opentelemetry-operator/apis/v1alpha1"
	telemetryv1beta1 "github.com/open-telemetry/opentelemetry-operator/apis/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// kinds return new objects, by kind and version.
var kinds = map[string]map[string]func() any{
	"ExternalSecret": {
		"v1alpha1": func() any { return &secretsv1alpha1.ExternalSecret{} },
		"v1beta1":  func() any { return &secretsv1beta1.ExternalSecret{} },
	},
	"OpenTelemetryCollector": {
		"v1alpha1": func() any { return &telemetryv1alpha1.OpenTelemetryCollector{} },
		"v1beta1":  func() any { return &telemetryv1beta1.OpenTelemetryCollector{} },
	},
}

// request is an object of a kind and version, to convert to a version. If that is the same version, the
// object is only read and written by the Go type.
type request struct {
	Kind, From, To string
	Object         json.RawMessage
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
	source := kinds[asked.Kind][asked.From]()
	decoder := json.NewDecoder(bytes.NewReader(asked.Object))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(source); err != nil {
		return nil, fmt.Errorf("reading an object of %s: %w", asked.From, err)
	}
	if asked.From == asked.To {
		return source, nil
	}
	target := kinds[asked.Kind][asked.To]()
	if hub, isHub := target.(conversion.Hub); isHub {
		return target, source.(conversion.Convertible).ConvertTo(hub)
	}
	return target, target.(conversion.Convertible).ConvertFrom(source.(conversion.Hub))
}
