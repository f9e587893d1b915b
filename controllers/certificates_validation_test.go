//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCertificatesAreValidated checks the answer of the API server to each mistake.
func TestCertificatesAreValidated(t *testing.T) {
	cases := map[string]struct{ certificates, want string }{
		"nothing":                     {"{}", "set exactly one source of certificates"},
		"two sources":                 {"{selfManaged: {}, secret: {name: theirs}}", "set exactly one source of certificates"},
		"self-managed":                {"{selfManaged: {}}", ""},
		"all of it":                   {"{selfManaged: {caDuration: 8760h, duration: 720h, renewBefore: 240h, rotationTrigger: now}}", ""},
		"a unit that is none":         {"{selfManaged: {duration: 90d}}", "duration"},
		"a short duration":            {"{selfManaged: {duration: 30m}}", "duration must be 1h or more"},
		"a short authority":           {"{selfManaged: {caDuration: 100h, duration: 50h}}", "caDuration must be at least three times duration"},
		"an authority, too short":     {"{selfManaged: {caDuration: 6000h}}", "caDuration must be at least three times duration"},
		"renewed after it expired":    {"{selfManaged: {renewBefore: 2160h}}", "renewBefore must be shorter than duration"},
		"a long authority":            {"{selfManaged: {caDuration: 876001h}}", "876000h (100 years) or less"},
		"renewed before it is issued": {"{selfManaged: {duration: 24h, renewBefore: 24h}}", "renewBefore must be shorter than duration"},
		"renewed in the last moment":  {"{selfManaged: {renewBefore: 1m}}", "renewBefore must be 10m or more"},
		"an issuer":                   {"{certManager: {issuerRef: {name: company}}}", ""},
		"no issuer":                   {"{certManager: {}}", "issuerRef"},
		"a Secret":                    {"{secret: {name: theirs}}", ""},
		"a Secret without a name":     {"{secret: {name: ''}}", "name"},
		"injected":                    {"{injected: {secretName: theirs}}", ""},
		"injected, and no Secret":     {"{injected: {}}", "certificates.injected.secretName must name the Secret"},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			policy := &unstructured.Unstructured{}
			unmarshal(t, "apiVersion: conversion-operator.io/v1alpha1\nkind: ConversionPolicy\nmetadata: {name: certificates.example.com}\nspec: {converter: {declarative: {hub: v1, spokes: [{version: v2}]}}, certificates: "+
				c.certificates+"}", policy)
			checkRefusal(t, policy, c.want)
		})
	}
}
