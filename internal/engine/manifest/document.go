// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Stdin is the path that stands for the standard input.
const Stdin = "-"

// Form is the format of a document.
type Form string

// The forms.
const (
	JSON Form = "json"
	YAML Form = "yaml"
)

// Document is one object, or one list of objects, of a file.
type Document struct {
	// Source is the file's path, or "stdin".
	Source string
	// Index counts the documents of the source from 1.
	Index int
	// Form is the format in which it was read.
	Form Form
	// JSON is the document as JSON; a document in JSON keeps its bytes.
	JSON []byte
}

// String returns the location of the document.
func (d Document) String() string { return fmt.Sprintf("%s, document %d", d.Source, d.Index) }

// ReadAll reads files, the .json, .yaml and .yml files in directories, and the
// standard input, in the order of paths. Errors name the file.
func ReadAll(paths []string, stdin io.Reader) ([]Document, error) {
	var documents []Document
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			documents = append(documents, found...)
		}
	}
	return documents, nil
}

// filesOf returns the files of a directory, without subdirectories, like kubectl.
func filesOf(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no .json, .yaml or .yml file", path)
	}
	return files, nil
}

func readFile(path string, stdin io.Reader) ([]Document, error) {
	if path == Stdin {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		return Parse("stdin", text)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the documents of a text in JSON or YAML. It leaves out empty documents, but
// Index counts them.
func Parse(source string, text []byte) ([]Document, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return parseYAML(source, text)
	}
	documents, err := parseJSON(source, text)
	if err == nil {
		return documents, nil
	}
	// YAML may also begin with a brace.
	if documents, yamlErr := parseYAML(source, text); yamlErr == nil {
		return documents, nil
	}
	return nil, err
}

func parseJSON(source string, text []byte) ([]Document, error) {
	var documents []Document
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		document := Document{Source: source, Index: len(documents) + 1, Form: JSON}
		err := decoder.Decode((*json.RawMessage)(&document.JSON))
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err == nil {
			err = document.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document, clarify(text, err))
		}
		documents = append(documents, document)
	}
}

func parseYAML(source string, text []byte) ([]Document, error) {
	var documents []Document
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for index := 1; ; index++ {
		document, node := Document{Source: source, Index: index, Form: YAML}, yaml.Node{}
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err == nil {
			document.JSON, err = ToJSON(&node)
		}
		if err == nil && string(document.JSON) == "null" {
			continue
		}
		if err == nil {
			err = document.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document, clarify(text, err))
		}
		documents = append(documents, document)
	}
}

// clarify replaces or completes an error of encoding/json or yaml. The error about the depth of a document has no type
// in both packages; that of encoding/json begins with "invalid character".
func clarify(text []byte, err error) error {
	switch syntax, isJSON := errors.AsType[*json.SyntaxError](err); {
	case strings.Contains(err.Error(), "exceeded max depth"):
		return errTooDeep
	case bytes.IndexByte(text, 0) >= 0:
		return errors.New("it is not text: it has null characters")
	case bytes.Contains(text, []byte("{{")):
		return fmt.Errorf("%w: it contains {{, as templates do: render it first, for example with helm template", err)
	case isJSON:
		return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n")), err)
	}
	return err
}

func (d Document) check() error {
	if d.JSON[0] != '{' {
		return errors.New("expected an object, with apiVersion and kind")
	}
	return nil
}
