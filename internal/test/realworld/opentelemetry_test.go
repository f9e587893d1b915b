// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// collector is an object whose configuration in YAML has one form, because both conversions write it in a
// form of their own.
type collector struct{ remote }

// MarshalJSON returns the object as the project's Go type writes it, with that form.
func (r *collector) MarshalJSON() ([]byte, error) {
	object := decode(r.text)
	spec := asMap(asMap(object)["spec"])
	if text, isText := spec["config"].(string); isText {
		a := new(tree.Arena)
		if value := document.Read(a, document.YAML, []byte(text)); value != nil {
			spec["config"] = string(document.Write(a, document.YAML, value))
		}
	}
	return json.Marshal(object)
}

// TestOpenTelemetryCollector: the OpenTelemetry Operator's v1beta1.
func TestOpenTelemetryCollector(t *testing.T) {
	process := startOlder(t, "OpenTelemetryCollector")
	version := func(name string) version {
		return version{name, func() any { return &collector{remote{process: process, version: name}} }}
	}
	convert := func(from, to any) error { return convertRemote(&from.(*collector).remote, &to.(*collector).remote) }
	const (
		invalid  = "theirs writes an empty configuration for a text that is invalid or has another type, and the text is lost; ours preserves the text"
		filled   = "theirs adds what a configuration must have; ours adds nothing to what the user wrote"
		forgot   = "theirs forgets the field, in both directions, and it is lost; ours copies it"
		strategy = "theirs drops a strategy that it does not know; ours copies it"
		all      = "theirs writes a selector for all monitors also without a target allocator; ours only in objects that exist"
	)
	isEmpty := func(theirs, ours any) bool { return show(theirs) == "{}" && (ours == nil || ours == absent) }
	p := project{
		sample: "opentelemetry-collectors",
		module: "github.com/open-telemetry/opentelemetry-operator",
		at:     older,
		crd:    "config/crd/bases/opentelemetry.io_opentelemetrycollectors.yaml",
		spoke:  version("v1alpha1"),
		hub:    version("v1beta1"),
		own:    convert,
		differences: []difference{
			{"v1beta1", ".spec.config.receivers", isEmpty, invalid},
			{"v1beta1", ".spec.config.exporters", isEmpty, filled},
			{"v1beta1", ".spec.config.service.pipelines", isEmpty, filled},
			{"v1alpha1", ".spec.config", onlyTheirs, "theirs writes an empty configuration for an object without a spec; ours adds nothing"},
			{"v1beta1", ".spec.serviceName", onlyOurs, forgot},
			{"v1alpha1", ".spec.serviceName", onlyOurs, forgot},
			{"v1beta1", ".spec.targetAllocator.filterStrategy", onlyOurs, strategy},
			{"v1beta1", ".spec.targetAllocator.prometheusCR.podMonitorSelector", isEmpty, all},
			{"v1beta1", ".spec.targetAllocator.prometheusCR.serviceMonitorSelector", isEmpty, all},
		},
		examples: map[string][]any{
			quantity: quantities,
			".spec.targetAllocator.prometheusCR.scrapeInterval":   {"30s", "1m0s"},
			".spec.targetAllocator.collectorNotReadyGracePeriod":  {"30s", "1m0s"},
			".spec.targetAllocator.collectorTargetReloadInterval": {"30s", "1m0s"},
			"v1alpha1:.spec.config":                               slices.Concat(slices.Repeat(collectorTexts, 6), noCollectorTexts),
			"v1beta1:.spec.config":                                collectorConfigs(),
		},
	}
	p.check(t)
}

// collectorTexts are configurations as users write them.
var collectorTexts = []any{
	`receivers:
  otlp:
    protocols:
      grpc: # the default port
      http: {endpoint: 0.0.0.0:4318}
processors: {batch: {timeout: 5s, send_batch_size: 10000}}
exporters: {debug: {}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [debug]}
`,
	`receivers: &none {}
exporters:
  otlp:
    tls: {insecure: true}
    headers: {"on": "yes", version: "1.10", code: 0x1F}
    ratio: 0.50
service:
  telemetry: {logs: {level: debug}, resource: *none}
  pipelines: {}
`,
	`exporters: {}
receivers: {}
service:
  extensions: [health_check]
  pipelines: {}
extensions:
  health_check: {}
`,
}

// noCollectorTexts lack what a configuration must have, or are none.
var noCollectorTexts = []any{
	"receivers: {}\n",
	"",
	"receivers: ]",
	"receivers: []",
	"receivers: {}\nreceivers: {}\n",
}

// collectorConfigs are the same as objects, with values of each type.
func collectorConfigs() []any {
	return []any{
		decode([]byte(`{"receivers":{"otlp":{"protocols":{"grpc":null,"http":{"endpoint":"0.0.0.0:4318"}}}},"exporters":{"debug":{}},"processors":{"batch":{"timeout":"5s"}},
			"service":{"pipelines":{"traces":{"receivers":["otlp"],"processors":["batch"],"exporters":["debug"]}}}}`)),
		decode([]byte(`{"receivers":{},"exporters":{"otlp":{"insecure":true,"ratio":0.5,"large":12345678901,"list":[1,"a",{"b":[]}],"script":"first\nsecond\n","on":"yes","version":"1.10"}},
			"connectors":{"forward":{}},"extensions":{"health_check":{}},"service":{"extensions":["health_check"],"telemetry":{"logs":{"level":"debug"}},"pipelines":{}}}`)),
		decode([]byte(`{"receivers":{},"exporters":{},"service":{"pipelines":{}}}`)),
	}
}
