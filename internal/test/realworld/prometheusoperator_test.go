// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"testing"

	"github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1beta1"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil" // so that go.mod has the module with the CustomResourceDefinitions
)

// TestAlertmanagerConfig: the Prometheus Operator's v1beta1.
func TestAlertmanagerConfig(t *testing.T) {
	const (
		none = "theirs makes null of an empty list; ours copies it"
		ttl  = "theirs forgets the field, in both directions, and it is lost; ours copies it"
	)
	p := kind[v1alpha1.AlertmanagerConfig, v1beta1.AlertmanagerConfig]("prometheus-operator-alertmanagerconfigs", "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd-full/monitoring.coreos.com_alertmanagerconfigs.yaml")
	p.differences = []difference{
		{"v1beta1", ".spec.receivers", emptied, none},
		{"v1alpha1", ".spec.receivers", emptied, none},
		{"v1beta1", ".spec.receivers[*].pushoverConfigs[*].ttl", onlyOurs, ttl},
		{"v1alpha1", ".spec.receivers[*].pushoverConfigs[*].ttl", onlyOurs, ttl},
	}
	p.examples = map[string][]any{
		".spec.route.routes": {
			[]any{map[string]any{"receiver": "one", "matchers": []any{map[string]any{"name": "job", "value": "a", "matchType": "="}}}},
		},
		"v1alpha1:.spec.route.routes": {
			[]any{map[string]any{"receiver": "two", "matchers": []any{map[string]any{"name": "job", "value": "a.*", "regex": true}}}},
			[]any{map[string]any{"receiver": "one", "matchers": []any{map[string]any{"name": "job", "value": "a", "matchType": "="}}}},
			[]any{map[string]any{"receiver": "three", "continue": true, "routes": []any{
				map[string]any{"receiver": "four", "matchers": []any{map[string]any{"name": "job", "value": "b"}}},
				map[string]any{"receiver": "five", "groupBy": []any{"job"}, "routes": []any{map[string]any{"receiver": "six", "matchers": []any{map[string]any{"name": "job", "value": "c.*", "regex": true}}}}},
			}}},
		},
	}
	// These have the same fields as that of webhooks.
	for _, receiver := range []string{"discord", "msteams", "msteamsv2", "opsgenie", "pagerduty", "pushover", "rocketchat", "slack", "sns", "telegram", "victorops", "webex", "wechat"} {
		p.examples[".spec.receivers[*]."+receiver+"Configs[*].httpConfig"] = []any{map[string]any{"followRedirects": true}}
	}
	p.check(t)
}
