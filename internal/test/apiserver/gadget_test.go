//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"testing"
)

// The gadgets of most scenarios have three versions. Each has fields in another form than the
// others, and one that the others lack.
var gadgetVersions = versionsOf("v1",
	schemas{
		name: "v1alpha1", spec: "properties: {" + gadgetFields("") + `, hostPort: {type: string}, count: {type: integer}, mode: {type: string, enum: [Fast, Slow]},
  legacy: {type: object, x-kubernetes-preserve-unknown-fields: true}}`,
		status: "ready: {type: integer}, phase: {type: string}",
	},
	schemas{
		name: "v1beta1", spec: "properties: {" + gadgetFields("") + `, address: {type: object, properties: {host: {type: string}, port: {type: integer}}}, replicas: {type: integer},
  mode: {type: string, enum: [Express, Standard]}, hint: {type: string}}`,
		status: "ready: {type: integer}, phase: {type: string}",
	},
	schemas{
		name: "v1", spec: "properties: {" + gadgetFields(", weight: {type: integer}") + `, endpoint: {type: object, properties: {host: {type: string}, port: {type: integer}}},
  scaling: {type: object, properties: {replicas: {type: integer}}}, mode: {type: string, enum: [Express, Standard]}, tier: {type: string}}`,
		status: "scaling: {type: object, properties: {ready: {type: integer}}}, phase: {type: string}, selector: {type: string}",
	})

// gadgetFields are the fields of every version. ofPorts are more fields of a port.
func gadgetFields(ofPorts string) string {
	return "team: {type: string}, limit: {type: integer}, " + fmt.Sprintf(keyed, ", number: {type: integer}"+ofPorts)
}

const gadgetRules = `
hub: v1
spokes:
- version: v1alpha1
  rules:
  - format: {from: .spec.hostPort, template: "{host}:{port}", to: {host: .spec.endpoint.host, port: .spec.endpoint.port}}
  - move: {from: .spec.count, to: .spec.scaling.replicas}
  - values: {from: .spec.mode, to: .spec.mode, table: [{from: Fast, to: Express}, {from: Slow, to: Standard}]}
  - move: {from: .status.ready, to: .status.scaling.ready}
- version: v1beta1
  rules:
  - move: {from: .spec.address, to: .spec.endpoint}
  - move: {from: .spec.replicas, to: .spec.scaling.replicas}
  - move: {from: .status.ready, to: .status.scaling.ready}
`

var versions = []string{"v1alpha1", "v1beta1", "v1"}

// common is the same gadget at each version, as a format for its host.
var common = map[string]string{
	"v1alpha1": `hostPort: "%s:8080", count: 3, mode: Fast, team: blue, limit: 9007199254740993, ports: [{name: http, number: 80}, {name: dns, number: 53}]`,
	"v1beta1":  `address: {host: %s, port: 8080}, replicas: 3, mode: Express, team: blue, limit: 9007199254740993, ports: [{name: http, number: 80}, {name: dns, number: 53}]`,
	"v1":       `endpoint: {host: %s, port: 8080}, scaling: {replicas: 3}, mode: Express, team: blue, limit: 9007199254740993, ports: [{name: http, number: 80}, {name: dns, number: 53}]`,
}

// own are the fields that only one version has.
var own = map[string]string{
	"v1alpha1": `legacy: {any: [1, {thing: x}]}`,
	"v1beta1":  `hint: nearby`,
	"v1":       `tier: gold`,
}

// spec returns the gadget's spec at one version, with the version's own field.
func spec(version, host string) string {
	return fmt.Sprintf("spec: {"+common[version]+", "+own[version]+"}", host)
}

// seen returns the spec of a gadget that was written at one version and is read at another.
func seen(written, read, host string) string {
	if written == read {
		return spec(read, host)
	}
	return fmt.Sprintf("spec: {"+common[read]+"}", host)
}

func (s *apiServer) installGadgets(t *testing.T, name string) *kind {
	t.Helper()
	return s.install(t, name, gadgetVersions, gadgetRules)
}
