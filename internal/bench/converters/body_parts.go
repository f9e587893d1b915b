// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import "fmt"

// set returns a set of fields in the notation of managedFields.
func set(names ...string) map[string]any {
	fields := map[string]any{}
	for _, name := range names {
		fields["f:"+name] = map[string]any{}
	}
	return fields
}

func managedFields(manager, subresource string) map[string]any {
	entry := map[string]any{
		"apiVersion": group + "/v1", "fieldsType": "FieldsV1", "manager": manager,
		"operation": "Update", "time": "2026-11-02T08:30:00Z",
	}
	if subresource != "" {
		entry["subresource"] = subresource
		entry["fieldsV1"] = map[string]any{"f:status": map[string]any{"f:conditions": set("lastTransitionTime", "message", "reason", "status")}}
		return entry
	}
	spec := set("cron", "endpoint", "image", "concurrencyPolicy", "nodeName", "description", "budget", "env", "template")
	spec["f:ports"] = map[string]any{`k:{"name":"http"}`: set("name", "number", "protocol")}
	entry["fieldsV1"] = map[string]any{
		"f:metadata": map[string]any{"f:annotations": set("example.com/note"), "f:labels": set("app.kubernetes.io/name")},
		"f:spec":     spec,
	}
	return entry
}

// port and variable return one of many elements. Negative numbers are for elements that every
// object has.
func port(number int) map[string]any {
	return map[string]any{"name": fmt.Sprintf("port%d", number), "number": int64(9000 + number), "protocol": "TCP"}
}

func variable(number int) map[string]any {
	return map[string]any{"name": fmt.Sprintf("COLLECTOR_SETTING_%d", number), "value": fmt.Sprintf("https://example.com/settings/%d", number)}
}

func conditions(count int) []any {
	var all []any
	for i := range count {
		all = append(all, map[string]any{
			"lastTransitionTime": "2026-11-02T08:31:07Z", "message": "the last run has ended as it should",
			"observedGeneration": int64(3), "reason": "Completed", "status": "True", "type": fmt.Sprintf("Stage%d", i),
		})
	}
	return all
}

// template returns a pod template with every member that the Go type writes, including empty ones,
// because a typed handler adds those.
func template() map[string]any {
	container := func(name string) map[string]any {
		return map[string]any{
			"args":  []any{"--config=/etc/collector/config.yaml", "--verbosity=2", `--match="night"`},
			"env":   []any{variable(1), variable(2), variable(3)},
			"image": "registry.example.com/jobs/" + name + ":v1.42.0",
			"livenessProbe": map[string]any{
				"httpGet":       map[string]any{"path": "/healthz", "port": int64(8080)},
				"periodSeconds": int64(10),
			},
			"name":  name,
			"ports": []any{map[string]any{"containerPort": int64(8080), "name": "http", "protocol": "TCP"}},
			"resources": map[string]any{
				"limits":   map[string]any{"cpu": "2", "memory": "1Gi"},
				"requests": map[string]any{"cpu": "500m", "memory": "256Mi"},
			},
			"volumeMounts": []any{map[string]any{"mountPath": "/etc/collector", "name": "config", "readOnly": true}},
		}
	}
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "collector"}},
		"spec": map[string]any{
			"containers":         []any{container("collector"), container("uploader")},
			"restartPolicy":      "OnFailure",
			"serviceAccountName": "collector",
			"volumes":            []any{map[string]any{"configMap": map[string]any{"name": "collector"}, "name": "config"}},
		},
	}
}
