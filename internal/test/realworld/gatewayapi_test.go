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
	p := kind[v1beta1.HTTPRoute, v1.HTTPRoute]("gateway-api-httproutes", "sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml")
	p.own = copyFields
	p.check(t)
}
