// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	preservedPrefix = "conversion-operator.io/"
	format          = json.Number("2")
	// maxAnnotations limits all annotations of an object, and maxInflated a compressed annotation
	// after decompression, in bytes.
	maxAnnotations = 256 << 10
	maxInflated    = 4 << 20
)

var annotations = path{"metadata", "annotations"}

// annotationName returns the name of the annotation for a version of a resource.
func annotationName(resource, version string) string {
	name := version + "." + resource
	if len(name) > 63 {
		sum := sha256.Sum256([]byte(name))
		name = name[:46] + "-" + hex.EncodeToString(sum[:])[:16]
	}
	return preservedPrefix + name
}

// readPreserved returns the preserved data of a version, and whether its annotation is readable.
func readPreserved(object any, resource, version string) (p *preserved, readable bool) {
	p = newPreserved()
	text, isText := find(object, append(annotations[:2:2], annotationName(resource, version))).(string)
	return p, isText && readFormat(text, p)
}

// takePreserved is readPreserved, and removes the annotation. An unreadable annotation remains.
func takePreserved(object any, resource, version string) *preserved {
	p, readable := readPreserved(object, resource, version)
	if !readable {
		return p
	}
	if remove(object, append(annotations[:2:2], annotationName(resource, version))); hasNoMembers(find(object, annotations)) {
		remove(object, annotations)
	}
	return p
}

// readFormat reads the value of an annotation. It refuses members of wrong types.
func readFormat(text string, into *preserved) bool {
	members, _ := decodeObject(text)
	if packed, is := members["deflate"].(string); is && members["format"] == format && len(members) == 2 {
		members, _ = decodeObject(inflate(packed))
	}
	fields, areFields := object(members, "fields")
	orders, areOrders := object(members, "orders")
	excluded, areExcluded := object(members, "excluded")
	images, areImages := object(members, "images")
	anchors, areAnchors := object(members, "anchors")
	absent, areTexts := texts(members, "absent")
	_, packed := members["deflate"]
	if members["format"] != format || packed || !areFields || !areOrders || !areExcluded || !areImages || !areAnchors || !areTexts {
		return false
	}
	for pointer, value := range fields {
		into.put(pointer, aValue, value, images[pointer])
	}
	for pointer, value := range orders {
		into.put(pointer, anOrder, value, images[pointer])
	}
	for pointer, value := range excluded {
		into.put(pointer, anExcluded, value, nil)
	}
	for _, pointer := range absent {
		into.put(pointer, anAbsence, nil, nil)
	}
	for pointer, anchor := range anchors {
		for _, kind := range []kind{aValue, anAbsence} {
			if e := into.find(pointer, kind); e != nil {
				e.anchor = anchor
			}
		}
	}
	for name := range members {
		if !slices.Contains([]string{"format", "fields", "orders", "excluded", "images", "anchors", "absent", "dropped", "unreadable"}, name) {
			return false
		}
	}
	if text, found := members["unreadable"]; found {
		if _, isText := text.(string); !isText {
			return false
		}
		into.unreadable = text
	}
	return true
}

// object returns a member that must be an object if it exists.
func object(of map[string]any, name string) (members map[string]any, is bool) {
	value, found := of[name]
	members, is = value.(map[string]any)
	return members, is || !found
}

func texts(of map[string]any, name string) (texts []string, are bool) {
	value, found := of[name]
	list, isList := value.([]any)
	for _, element := range list {
		text, isText := element.(string)
		if !isText {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, isList || !found
}

func decodeObject(text string) (members map[string]any, is bool) {
	value, err := Decode([]byte(text))
	members, is = value.(map[string]any)
	return members, is && err == nil
}

// inflate decompresses an annotation. It returns nothing if the text is damaged or too long.
func inflate(packed string) string {
	reader := flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	text, err := io.ReadAll(io.LimitReader(reader, maxInflated+1))
	if err != nil || len(text) > maxInflated {
		return ""
	}
	return string(text)
}

// putPreserved writes the annotation of a version if there is anything to preserve. An existing
// text is one that could not be read.
func putPreserved(object map[string]any, resource, version string, p *preserved) error {
	if len(p.entries) == 0 && p.unreadable == none {
		return nil
	}
	at := slices.Concat(annotations, path{annotationName(resource, version)})
	if text, isText := find(object, at).(string); isText {
		p.unreadable = text
	}
	if len(p.entries) > 0 {
		put(object, at, marshal(p.content()))
	} else {
		put(object, at, p.unreadable)
	}
	size := 0
	for name, value := range find(object, annotations).(map[string]any) {
		text, _ := value.(string)
		size += len(name) + len(text)
	}
	if size > maxAnnotations {
		return fmt.Errorf("the annotations have %d bytes", size)
	}
	return nil
}

// content returns the value of the annotation.
func (p *preserved) content() map[string]any {
	fields, orders, excluded, images, anchors, absent := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, []any{}
	for _, key := range p.places() {
		e := p.entries[key]
		switch key.kind {
		case anAbsence:
			absent = append(absent, key.pointer)
		case anExcluded:
			excluded[key.pointer] = e.value
		case anOrder:
			orders[key.pointer] = e.value
		default:
			fields[key.pointer] = e.value
		}
		if e.images != nil {
			images[key.pointer] = e.images
		}
		if e.anchor != nil {
			anchors[key.pointer] = e.anchor
		}
	}
	all := map[string]any{"format": format}
	for name, members := range map[string]map[string]any{"fields": fields, "orders": orders, "excluded": excluded, "images": images, "anchors": anchors} {
		if len(members) > 0 {
			all[name] = members
		}
	}
	if len(absent) > 0 {
		all["absent"] = absent
	}
	if p.unreadable != none {
		all["unreadable"] = p.unreadable
	}
	return all
}
