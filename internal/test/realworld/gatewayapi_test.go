// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"encoding/json"
	"testing"

	v1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1beta1"
)

// TestHTTPRoute: Gateway API's v1, which its CustomResourceDefinition converts with the strategy None.
func TestHTTPRoute(t *testing.T) {
	copyFields := func(from, to any) error {
		text, err := json.Marshal(from)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, to)
	}
	p := project{
		sample:  "gateway-api-httproutes",
		module:  "sigs.k8s.io/gateway-api",
		crd:     "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
		spoke:   version{"v1beta1", func() any { return &v1beta1.HTTPRoute{} }},
		hub:     version{"v1", func() any { return &v1.HTTPRoute{} }},
		toHub:   copyFields,
		fromHub: copyFields,
	}
	p.check(t)
}
