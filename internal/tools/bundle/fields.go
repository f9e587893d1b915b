// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// field is the console's description of one field.
type field struct {
	path, title, description string
	// widgets are x-descriptors: how a console shows or edits the field. From openshift/console,
	// frontend/packages/operator-lifecycle-manager/src/components/descriptors/types.ts.
	widgets []string
}

const (
	widget   = "urn:alm:descriptor:com.tectonic.ui:"
	resource = "urn:alm:descriptor:io.kubernetes:"
)

// setting and state return the widgets of fields of a spec and of a status.
func setting(name string, schema apiextensionsv1.JSONSchemaProps) []string {
	if special, ok := settings[name]; ok {
		return []string{special}
	}
	switch {
	case len(schema.Enum) > 0:
		return choices(schema.Enum)
	case schema.Type == "boolean":
		return []string{widget + "booleanSwitch"}
	case schema.Type == "integer" || schema.Type == "number":
		return []string{widget + "number"}
	case schema.Type == "string":
		return []string{widget + "text"}
	}
	return nil
}

func state(name string, schema apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case name == "conditions":
		return []string{"urn:alm:descriptor:io.kubernetes.conditions"}
	case schema.Type == "object" || schema.Type == "array":
		return nil
	}
	return []string{widget + "text"}
}

// settings are fields whose type does not imply the widget.
var settings = map[string]string{
	"resources":          widget + "resourceRequirements",
	"replicas":           widget + "podCount",
	"affinity":           widget + "nodeAffinity",
	"nodeSelector":       widget + "selector:core:v1:Node",
	"serviceAccountName": resource + "ServiceAccount",
	"secretName":         resource + "Secret",
	"namespace":          resource + "Namespace",
}

// kubernetes are fields with types of Kubernetes, whose fields need no description.
var kubernetes = map[string]bool{
	"affinity": true, "env": true, "nodeSelector": true, "resources": true, "tolerations": true, "topologySpreadConstraints": true,
}

func choices(enum []apiextensionsv1.JSON) []string {
	var result []string
	for _, each := range enum {
		text := ""
		if json.Unmarshal(each.Raw, &text) == nil {
			result = append(result, widget+"select:"+text)
		}
	}
	return result
}

// describeFields describes every field. A field in a list is described for its first element.
func describeFields(schema apiextensionsv1.JSONSchemaProps, show func(string, apiextensionsv1.JSONSchemaProps) []string) []field {
	var result []field
	var walk func(path string, schema apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			here := strings.TrimPrefix(path+"."+name, ".")
			result = append(result, field{
				path: here, title: title(name), description: firstParagraph(property.Description), widgets: show(name, property)})
			if kubernetes[name] {
				continue
			}
			walk(here, property)
			if property.Items != nil && property.Items.Schema != nil {
				walk(here+"[0]", *property.Items.Schema)
			}
		}
	}
	walk("", schema)
	return result
}

// title returns Max Writes Per Second for maxWritesPerSecond.
func title(name string) string {
	var words []string
	letters, start := []rune(name), 0
	for i := 1; i <= len(letters); i++ {
		if i == len(letters) || startsWord(letters, i) {
			words = append(words, capital(string(letters[start:i])))
			start = i
		}
	}
	return strings.Join(words, " ")
}

func startsWord(letters []rune, i int) bool {
	if !unicode.IsUpper(letters[i]) {
		return false
	}
	return !unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])
}

// capital capitalises a word, and writes abbreviations in upper case.
func capital(word string) string {
	switch word {
	case "api", "ca", "crd", "uid", "url":
		return strings.ToUpper(word)
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

func firstParagraph(text string) string {
	paragraph, _, _ := strings.Cut(text, "\n\n")
	return strings.Join(strings.Fields(paragraph), " ")
}
