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
	p := kind[v1beta2.EventType, v1beta3.EventType]("knative-eventtypes", "knative.dev/eventing", "config/core/resources/eventtype.yaml")
	p.own = knative[*v1beta2.EventType](t.Context())
	p.differences = []difference{
		{"v1beta3", ".spec.attributes", func(theirs, ours any) bool { return theirs != absent && ours == nil },
			"theirs writes four attributes without values for an object without a spec; ours fills only objects that exist"},
	}
	p.examples = map[string][]any{
		".spec.schema": {"https://example.com/schema"},
		".spec.source": {"/apis/v1/source", "https://example.com/source"},
		".spec.attributes": {
			[]any{attribute("id", ""), attribute("type", "example"), attribute("source", "https://example.com/source")},
			[]any{attribute("schemadata", "https://example.com/schema"), attribute("subject", "example")},
			[]any{attribute("type", ""), attribute("source", ""), attribute("schemadata", "")},
			[]any{},
		},
	}
	maps.Copy(p.examples, knativeStatus)
	p.check(t)
}
