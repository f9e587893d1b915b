// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"maps"
	"testing"

	"knative.dev/eventing/pkg/apis/eventing/v1beta2"
	"knative.dev/eventing/pkg/apis/eventing/v1beta3"
)

// knativeStatus are examples for the status of a kind of Knative and of those who use its libraries.
var knativeStatus = map[string][]any{
	".status.annotations":                      {map[string]any{"key": "value"}},
	".status.conditions[*].lastTransitionTime": {"2026-01-02T03:04:05Z"},
}

// TestEventType: Knative Eventing's v1beta3.
func TestEventType(t *testing.T) {
	attribute := func(name, value string) any {
		return map[string]any{"name": name, "required": true, "value": value}
	}
	p := project{
		sample: "knative-eventtypes",
		module: "knative.dev/eventing",
		crd:    "config/core/resources/eventtype.yaml",
		spoke:  version{"v1beta2", func() any { return &v1beta2.EventType{} }},
		hub:    version{"v1beta3", func() any { return &v1beta3.EventType{} }},
		toHub: func(from, to any) error {
			return from.(*v1beta2.EventType).ConvertTo(t.Context(), to.(*v1beta3.EventType))
		},
		fromHub: func(from, to any) error {
			return to.(*v1beta2.EventType).ConvertFrom(t.Context(), from.(*v1beta3.EventType))
		},
		differences: []difference{
			{"v1beta3", ".spec.attributes", func(theirs, ours any) bool { return theirs != absent && ours == nil },
				"theirs writes four attributes without values for an object without a spec; ours fills only objects that exist"},
		},
		examples: map[string][]any{
			".spec.schema": {"https://example.com/schema"},
			".spec.source": {"/apis/v1/source", "https://example.com/source"},
			".spec.attributes": {
				[]any{attribute("id", ""), attribute("type", "example"), attribute("source", "https://example.com/source")},
				[]any{attribute("schemadata", "https://example.com/schema"), attribute("subject", "example")},
				[]any{attribute("type", ""), attribute("source", ""), attribute("schemadata", "")},
				[]any{},
			},
		},
	}
	maps.Copy(p.examples, knativeStatus)
	p.check(t)
}
