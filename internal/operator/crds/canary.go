// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxSamples bounds the values in a canary object: schemas with pod templates have thousands of
// fields.
const maxSamples = 1000

// BareCanary returns a canary object with metadata only. Server-side apply sends such objects to
// converters, for fields that a client does not own. The CustomResourceDefinition must have the
// version.
func BareCanary(crd *apiextensionsv1.CustomResourceDefinition, version string) []byte {
	return encode(envelope(crd, version))
}

// FilledCanary returns a canary object with a value in every field of the version's schema: the
// default, or the first value of the enum, or else a generated value.
func FilledCanary(crd *apiextensionsv1.CustomResourceDefinition, version string) []byte {
	object := envelope(crd, version)
	for i := range crd.Spec.Versions {
		declared := &crd.Spec.Versions[i]
		if declared.Name != version || declared.Schema == nil || declared.Schema.OpenAPIV3Schema == nil {
			continue
		}
		sampler := sampler{left: maxSamples}
		for _, name := range slices.Sorted(maps.Keys(declared.Schema.OpenAPIV3Schema.Properties)) {
			if _, taken := object[name]; !taken {
				property := declared.Schema.OpenAPIV3Schema.Properties[name]
				sampler.put(object, name, &property)
			}
		}
	}
	return encode(object)
}

func envelope(crd *apiextensionsv1.CustomResourceDefinition, version string) map[string]any {
	metadata := map[string]any{
		"name": "conversion-canary", "uid": "00000000-0000-0000-0000-000000000001",
		"labels": map[string]any{"conversion-canary": "label"}, "annotations": map[string]any{"conversion-canary": "annotation"},
	}
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		metadata["namespace"] = "conversion-canary"
	}
	return map[string]any{"apiVersion": crd.Spec.Group + "/" + version, "kind": crd.Spec.Names.Kind, "metadata": metadata}
}

func encode(object map[string]any) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		return nil // impossible: the values come from JSON
	}
	return text
}

// CanaryKey is the name of the only member of a map in a filled canary object.
const CanaryKey = "canary"

// sampler generates values, at most left of them.
type sampler struct{ left int }

// put sets a field, unless the limit is reached.
func (s *sampler) put(into map[string]any, name string, schema *apiextensionsv1.JSONSchemaProps) {
	if s.left--; s.left >= 0 {
		into[name] = s.value(schema)
	}
}

func (s *sampler) value(schema *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.Default != nil:
		return json.RawMessage(schema.Default.Raw)
	case len(schema.Enum) > 0:
		return json.RawMessage(schema.Enum[0].Raw)
	case schema.XIntOrString:
		return 1
	case schema.XEmbeddedResource:
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "conversion-canary"}}
	}
	switch schema.Type {
	case "object":
		return s.object(schema)
	case "array":
		if schema.Items == nil || schema.Items.Schema == nil {
			return []any{}
		}
		return []any{s.value(schema.Items.Schema)}
	case "integer":
		return 1
	case "number":
		return 1.5
	case "boolean":
		return true
	default:
		return text(schema.Format)
	}
}

func (s *sampler) object(schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		s.put(object, name, &property)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		s.put(object, CanaryKey, schema.AdditionalProperties.Schema)
	}
	return object
}

// text returns a string in the given format, one of those that Kubernetes' own types use.
func text(format string) string {
	known := map[string]string{
		"date-time": "2000-01-01T00:00:00Z", "date": "2000-01-01", "duration": "1h0m0s",
		"byte": "Y2FuYXJ5", "uuid": "00000000-0000-0000-0000-000000000002",
		"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "cidr": "192.0.2.0/24", "uri": "https://example.com", "hostname": "example.com",
	}
	if sample, ok := known[format]; ok {
		return sample
	}
	return "1"
}
