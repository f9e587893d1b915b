// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
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
	root, _ := new(tree.Arena).ReadLevels(text, outline) // the conversion refuses a malformed object
	copied := func(path ...string) string { return strings.Clone(root.At(path).Text()) }
	return Object{
		Place: place, APIVersion: copied("apiVersion"), Kind: copied("kind"),
		Namespace: copied("metadata", "namespace"), Name: copied("metadata", "name"), JSON: text,
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

// outline is how deep a document is read: its members, the items of a list, and their members.
const outline = 3

// items returns the positions of a list's items, nil if the document is not a list. A list
// has items, and a kind that ends in List.
func items(text []byte) ([]span, error) {
	root, err := new(tree.Arena).ReadLevels(text, outline)
	if err != nil || !strings.HasSuffix(root.Get("kind").Text(), "List") || root.Get("items") == nil {
		return nil, nil //nolint:nilerr // Not a list: the conversion refuses what is malformed.
	}
	list, spans := root.Get("items"), []span{}
	if !list.Is(tree.List) && !list.Is(tree.Null) { // null stands for an empty list
		return nil, errors.New("items is not a list")
	}
	for _, item := range list.Elems() {
		spans = append(spans, spanOf(text, item))
	}
	return spans, nil
}

func spanOf(text []byte, value *tree.Node) span {
	start := value.Start(text)
	return span{start, start + len(value.JSON())}
}

// SetAPIVersion returns the document with another apiVersion, and everything else unchanged.
func (d Document) SetAPIVersion(apiVersion string) (Document, error) {
	root, err := new(tree.Arena).ReadLevels(d.JSON, outline)
	if err != nil || root.Get("apiVersion") == nil {
		return d, err
	}
	at := spanOf(d.JSON, root.Get("apiVersion"))
	d.JSON = bytes.Join([][]byte{d.JSON[:at.start], tree.Quote(nil, apiVersion), d.JSON[at.end:]}, nil)
	return d, nil
}
