// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// name sets the version of the ClusterServiceVersion, and what depends on it.
func (o options) name(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if o.version != "" {
		version, err := semver.Parse(o.version)
		if err != nil {
			return fmt.Errorf("--version %q is not a version like 1.2.3: %w", o.version, err)
		}
		csv.Spec.Version.Version = version
	}
	csv.Name = packageName + ".v" + csv.Spec.Version.String()
	if o.replaces != "" {
		csv.Spec.Replaces = packageName + ".v" + o.replaces
	}
	return nil
}

// describe adds what consoles show of the kinds: descriptors of fields, and examples.
func (s *source) describe(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	definitions := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, object := range newPile(s.objects).takeAll("CustomResourceDefinition") {
		definitions[object.GetName()] = convert[apiextensionsv1.CustomResourceDefinition](object)
	}
	owned := csv.Spec.CustomResourceDefinitions.Owned
	if len(owned) != len(definitions) {
		return fmt.Errorf("config has %d CustomResourceDefinitions, and the base in config/manifests owns %d", len(definitions), len(owned))
	}
	for i := range owned {
		definition, ok := definitions[owned[i].Name]
		if !ok {
			return fmt.Errorf("the base in config/manifests owns %s, which is not in config/crd", owned[i].Name)
		}
		describeKind(&owned[i], definition)
	}
	examples, err := json.MarshalIndent(s.examples, "", "  ")
	if err != nil {
		return err
	}
	csv.Annotations["alm-examples"] = string(examples)
	csv.Spec.Icon = []operatorsv1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(s.icon), MediaType: "image/svg+xml"}}
	return nil
}

// describeKind describes the fields of the storage version.
func describeKind(kind *operatorsv1alpha1.CRDDescription, definition apiextensionsv1.CustomResourceDefinition) {
	for _, version := range definition.Spec.Versions {
		if !version.Storage {
			continue
		}
		kind.Version, kind.Kind = version.Name, definition.Spec.Names.Kind
		fields := version.Schema.OpenAPIV3Schema.Properties
		kind.SpecDescriptors = describeFields(fields["spec"], setting)
		for _, field := range describeFields(fields["status"], state) {
			kind.StatusDescriptors = append(kind.StatusDescriptors, operatorsv1alpha1.StatusDescriptor(field))
		}
	}
}

// encodeCSV encodes the ClusterServiceVersion without its status.
func encodeCSV(csv *operatorsv1alpha1.ClusterServiceVersion) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	return encode(withoutNulls(object))
}

// withoutNulls removes null timestamps, which Go's types encode.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
				continue
			}
			withoutNulls(field)
		}
	case []any:
		for _, element := range value {
			withoutNulls(element)
		}
	}
	return value
}

// The beginnings of x-descriptors: how a console shows or edits a field. From openshift/console,
// frontend/packages/operator-lifecycle-manager/src/components/descriptors/types.ts.
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
	"affinity": true, "conditions": true, "env": true, "nodeSelector": true, "resources": true, "tolerations": true, "topologySpreadConstraints": true,
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

// describeFields describes every field. A field in a list is described for its first element. show returns the
// x-descriptors of a field.
func describeFields(schema apiextensionsv1.JSONSchemaProps, show func(string, apiextensionsv1.JSONSchemaProps) []string) []operatorsv1alpha1.SpecDescriptor {
	var result []operatorsv1alpha1.SpecDescriptor
	var walk func(path string, schema apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			here := strings.TrimPrefix(path+"."+name, ".")
			result = append(result, operatorsv1alpha1.SpecDescriptor{
				Path: here, DisplayName: title(name), Description: firstParagraph(property.Description), XDescriptors: show(name, property)})
			if kubernetes[name] || strings.HasSuffix(here, ".ruleGroups[0].rules") { // as those of spokes
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

// wordStart and acronymEnd match the end of a word and the beginning of the next one.
var (
	wordStart  = regexp.MustCompile(`([^A-Z])([A-Z])`)
	acronymEnd = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// title returns Max Writes Per Second for maxWritesPerSecond.
func title(name string) string {
	name = acronymEnd.ReplaceAllString(wordStart.ReplaceAllString(name, "$1 $2"), "$1 $2")
	words := strings.Fields(name)
	for i := range words {
		words[i] = capital(words[i])
	}
	return strings.Join(words, " ")
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
