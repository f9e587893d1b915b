// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

func problemOf(err error) Problem {
	line := 1
	if at, ok := errors.AsType[*lineError](err); ok {
		line = at.line
	}
	return Problem{Line: line, Message: err.Error()}
}

// parse reads the documents of a text.
func parse(text string) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, parseError(err)
		}
		documents = append(documents, document)
	}
}

// parseError gives an error of the parser the line that its text names.
func parseError(err error) error {
	err = lineOfError(errors.New(strings.TrimPrefix(err.Error(), "yaml: ")))
	if at, ok := errors.AsType[*lineError](err); ok {
		return &lineError{at.line, fmt.Errorf("this is not YAML: %w", at.error)}
	}
	return fmt.Errorf("this is not YAML: %w", err)
}

// lineOfError takes the line from the start of an error's text.
func lineOfError(err error) error {
	line := 0
	if _, scanErr := fmt.Sscanf(err.Error(), "line %d:", &line); scanErr != nil {
		return err
	}
	_, text, _ := strings.Cut(err.Error(), ": ")
	return &lineError{line, errors.New(text)}
}
