// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Object is a document that is not a list, or an item of a list.
type Object struct {
	// Place is its location for messages; empty if the name suffices.
	Place string
	// APIVersion, Kind, Namespace and Name are empty if the object has none.
	APIVersion, Kind, Namespace, Name string
	// JSON is the object.
	JSON []byte
}

// NewObject reads the kind and the name of an object.
func NewObject(place string, text []byte) Object {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	// The conversion refuses a malformed object.
	_ = json.Unmarshal(text, &head)
	return Object{
		Place: place, APIVersion: head.APIVersion, Kind: head.Kind,
		Namespace: head.Metadata.Namespace, Name: head.Metadata.Name, JSON: text,
	}
}

// FullName returns namespace/name, or the name without a namespace.
func (o Object) FullName() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// String returns the location and the name of the object.
func (o Object) String() string {
	switch {
	case o.Name == "":
		return o.Place
	case o.Place == "":
		return o.FullName()
	}
	return o.Place + " (" + o.FullName() + ")"
}

// Objects returns the items of a list, or the document itself.
func (d Document) Objects() ([]Object, error) {
	var objects []Object
	_, err := d.Replace(func(object Object) ([]byte, error) {
		objects = append(objects, object)
		return object.JSON, nil
	})
	return objects, err
}

// Replace returns the document with another text for each of its objects. The rest of a
// list keeps its bytes. It returns the errors of all objects, which name the object.
func (d Document) Replace(with func(Object) ([]byte, error)) (Document, error) {
	replace := func(place string, text []byte) ([]byte, error) {
		object := NewObject(place, text)
		text, err := with(object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
		return text, nil
	}
	spans, err := items(d.JSON)
	if err != nil {
		return d, fmt.Errorf("%s: %w", d, err)
	}
	if spans == nil {
		d.JSON, err = replace(d.String(), d.JSON)
		return d, err
	}
	var out []byte
	var errs []error
	end := 0
	for i, span := range spans {
		text, err := replace(fmt.Sprintf("%s, items[%d]", d, i), d.JSON[span.start:span.end])
		out = append(append(out, d.JSON[end:span.start]...), text...)
		end, errs = span.end, append(errs, err)
	}
	d.JSON = append(out, d.JSON[end:]...)
	return d, errors.Join(errs...)
}

// IsList reports whether the document is a List, or a list of one kind.
func (d Document) IsList() bool {
	spans, err := items(d.JSON)
	return err == nil && spans != nil
}

// span is the position of a value in a text.
type span struct{ start, end int }

// items returns the positions of a list's items, nil if the document is not a list. A list
// has items, and a kind that ends in List.
func items(text []byte) ([]span, error) {
	var head struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil || !strings.HasSuffix(head.Kind, "List") || head.Items == nil {
		return nil, nil //nolint:nilerr // Not a list: the conversion refuses what is malformed.
	}
	spans := []span{}
	err := members(text, func(decoder *json.Decoder, name string) error {
		if name != "items" {
			return decoder.Decode(&json.RawMessage{})
		}
		found, err := elements(decoder)
		spans = append(spans, found...)
		return err
	})
	return spans, err
}

// members calls visit after the name of each member of an object.
func members(text []byte, visit func(decoder *json.Decoder, name string) error) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		if err := visit(decoder, fmt.Sprint(name)); err != nil {
			return err
		}
	}
	return nil
}

// elements reads an array, and returns the positions of its elements.
func elements(decoder *json.Decoder) ([]span, error) {
	opening, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if opening == nil {
		return nil, nil // null stands for an empty list
	}
	if opening != json.Delim('[') {
		return nil, errors.New("items is not a list")
	}
	var spans []span
	for decoder.More() {
		var element json.RawMessage
		if err := decoder.Decode(&element); err != nil {
			return nil, err
		}
		end := int(decoder.InputOffset())
		spans = append(spans, span{end - len(element), end})
	}
	_, err = decoder.Token()
	return spans, err
}

// SetAPIVersion returns the document with another apiVersion, and everything else unchanged.
func (d Document) SetAPIVersion(apiVersion string) (Document, error) {
	var at span
	err := members(d.JSON, func(decoder *json.Decoder, name string) error {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if end := int(decoder.InputOffset()); err == nil && name == "apiVersion" {
			at = span{end - len(value), end}
		}
		return err
	})
	if err != nil || at.end == 0 {
		return d, err
	}
	d.JSON = bytes.Join([][]byte{d.JSON[:at.start], quote(apiVersion), d.JSON[at.end:]}, nil)
	return d, nil
}
