//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "testing"

var ruleKind = twoVersions{
	v1: `data: {type: array, items: {type: object, required: [extract], properties: {extract: {type: object, properties: {key: {type: string}}}}}}, node: {type: string}, timeout: {type: string}, image: {type: string}, old: {type: string},
  env: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}}}},
  secrets: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, optional: {type: boolean}}}}, zones: {type: string}, since: {type: integer}, config: {type: string},
  vars: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}, secret: {type: boolean}}}},
  servers: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, host: {type: string}, zone: {type: string}, probe: {type: object, properties: {timeout: {type: string}, old: {type: string}}}}}}`,
	v2: `dataFrom: {type: array, items: {type: object, properties: {extract: {type: object, properties: {key: {type: string}}}, find: {type: string}, note: {type: string}}}}, nodes: {type: array, items: {type: string}}, timeoutSeconds: {type: integer}, repository: {type: string}, tag: {type: string},
  env: {type: object, additionalProperties: {type: object, properties: {value: {type: string}}}},
  secretNames: {type: array, items: {type: string}}, zones: {type: array, items: {type: string}}, since: {type: string, format: date-time}, vars: {type: object, additionalProperties: {type: string}},
  config: {type: object, properties: {level: {type: string}, outputs: {type: array, items: {type: object, properties: {name: {type: string}, mode: {type: string, default: sync}}}}}},
  net: {type: object, properties: {mode: {type: string}, endpoints: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, address: {type: string},
    health: {type: object, properties: {level: {type: string}, probe: {type: object, properties: {timeoutSeconds: {type: integer}}}}}}}}}}`,
	rules: ruleRules,
}

const ruleRules = `
hub: v2
spokes:
- version: v1
  rules:
  - wrap: {from: .spec.node, to: .spec.nodes}
  - cast: {from: .spec.timeout, to: .spec.timeoutSeconds, as: Seconds}
  - index: {from: .spec.env, to: .spec.env, key: name}
  - wrap: {from: .spec.secrets, to: .spec.secretNames, field: name}
  - index: {from: .spec.vars, to: .spec.vars, key: name, value: value}
  - cast: {from: .spec.zones, to: .spec.zones, as: List, separator: ","}
  - cast: {from: .spec.since, to: .spec.since, as: Timestamp}
  - cast: {from: .spec.config, to: .spec.config, as: YAML}
  - drop: {from: .spec.old}
  - move: {from: .spec.data, to: .spec.dataFrom}
  - exclude: {to: ".spec.dataFrom[*]", without: .extract}
  - move: {from: .spec.servers, to: .spec.net.endpoints}
  - move: {from: ".spec.servers[*].id", to: ".spec.net.endpoints[*].name"}
  - move: {from: ".spec.servers[*].host", to: ".spec.net.endpoints[*].address"}
  - move: {from: ".spec.servers[*].probe", to: ".spec.net.endpoints[*].health.probe"}
  - cast: {from: ".spec.servers[*].probe.timeout", to: ".spec.net.endpoints[*].health.probe.timeoutSeconds", as: Seconds}
  - cel:
      from: {image: .spec.image}
      to: {repository: .spec.repository, tag: .spec.tag}
      forward: {repository: "self.image.split(':')[0]", tag: "self.image.split(':')[1]"}
      backward: {image: "self.repository + ':' + self.tag"}
`

// testRules: rules that compute values, and values that are preserved because the rule is not
// reversible for them.
func testRules(t *testing.T, s *apiServer) {
	k := s.installTwo(t, "rules", ruleKind)
	for name, form := range map[string]struct{ version, fields, other string }{
		"wrap":          {"v1", "node: a", "nodes: [a]"},
		"wrap-two":      {"v2", "nodes: [a, b]", "node: a"},
		"cast":          {"v1", "timeout: 1m30s", "timeoutSeconds: 90"},
		"cast-unusual":  {"v1", "timeout: 90s", "timeoutSeconds: 90"},
		"cast-no-time":  {"v1", "timeout: soon", ""},
		"index":         {"v1", "env: [{name: a, value: x}, {name: b}]", "env: {a: {value: x}, b: {}}"},
		"index-order":   {"v1", "env: [{name: b}, {name: a, value: x}]", "env: {a: {value: x}, b: {}}"},
		"index-twice":   {"v1", "env: [{name: a}, {name: a}]", ""},
		"wrap-field":    {"v1", "secrets: [{name: b}, {name: a, optional: true}]", "secretNames: [b, a]"},
		"wrap-names":    {"v2", "secretNames: [b, a, b]", "secrets: [{name: b}, {name: a}, {name: b}]"},
		"index-value":   {"v1", "vars: [{name: b, value: x, secret: true}, {name: a, value: z}]", "vars: {a: z, b: x}"},
		"index-none":    {"v1", "vars: [{name: b}]", ""},
		"cast-list":     {"v1", "zones: 'a,b'", "zones: [a, b]"},
		"cast-comma":    {"v2", "zones: ['a,b', c]", "zones: 'a,b,c'"},
		"cast-time":     {"v1", "since: 1767323045", "since: '2026-01-02T03:04:05Z'"},
		"cast-yaml":     {"v1", `config: "level: a # why\noutputs: [{name: x}]\nother: 1\n"`, "config: {level: a, outputs: [{name: x, mode: sync}]}"},
		"cast-no-yaml":  {"v1", "config: 'level: ]'", ""},
		"cast-object":   {"v2", "config: {level: 'yes'}", `config: "level: \"yes\"\n"`},
		"cel":           {"v1", "image: 'nginx:1'", "repository: nginx, tag: '1'"},
		"cel-no-tag":    {"v1", "image: nginx", "repository: nginx"},
		"cel-back":      {"v2", "repository: nginx, tag: '1'", "image: 'nginx:1'"},
		"cel-back-half": {"v2", "repository: nginx", ""},
		"exclude":       {"v2", "dataFrom: [{find: x}, {extract: {key: a}, note: o}, {find: z}, {extract: {key: b}}]", "data: [{extract: {key: a}}, {extract: {key: b}}]"},
		"exclude-all":   {"v2", "dataFrom: [{find: x}]", "data: []"},
		"placed":        {"v1", "servers: [{id: a, host: h, zone: west}, {id: b, probe: {timeout: 5s, old: x}}]", "net: {endpoints: [{name: a, address: h}, {name: b, health: {probe: {timeoutSeconds: 5}}}]}"},
		"placed-around": {"v2", "net: {mode: m, endpoints: [{name: a, health: {level: high}}, {name: b, health: {}}]}", "servers: [{id: a}, {id: b}]"},
		"placed-empty":  {"v2", "net: {}", ""},
	} {
		other := map[string]string{"v1": "v2", "v2": "v1"}[form.version]
		k.create(t, form.version, name, "spec: {"+form.fields+"}")
		for range 2 {
			wantFields(t, name+" at "+other, k.get(t, other, name), "spec: {"+form.other+"}")
			wantFields(t, name+" at "+form.version, k.get(t, form.version, name), "spec: {"+form.fields+"}")
			k.mergePatch(t, other, name, "metadata: {labels: {touched: 'yes'}}")
		}
	}
	k.create(t, "v1", "drop", "spec: {old: gone, node: a}")
	k.mergePatch(t, "v2", "drop", "metadata: {labels: {touched: 'yes'}}")
	wantFields(t, "what was dropped", k.get(t, "v1", "drop"), "spec: {node: a}")
}
