// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/conversion-operator/conversion-operator/config/samples/crontab-image/converter/v1"
	"github.com/conversion-operator/conversion-operator/config/samples/crontab-image/converter/v1beta1"
)

// TestRoundTrip: converting to the other version and back restores every field.
func TestRoundTrip(t *testing.T) {
	named := metav1.ObjectMeta{Name: "one", Annotations: map[string]string{"a": "b"}}
	for name, spoke := range map[string]v1beta1.CronTab{
		"empty":       {},
		"all":         {ObjectMeta: named, HostPort: "localhost:1234", Replicas: new(int32(3)), Note: "ask first"},
		"no port":     {ObjectMeta: named, HostPort: "batch.example.com"},
		"IPv6":        {ObjectMeta: named, HostPort: "[::1]:80"},
		"two numbers": {ObjectMeta: named, HostPort: "a:1:2"},
	} {
		t.Run(name, func(t *testing.T) {
			var hub v1.CronTab
			var back v1beta1.CronTab
			if err := toHub(t.Context(), &spoke, &hub); err != nil {
				t.Fatal(err)
			}
			if err := fromHub(t.Context(), &hub, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(spoke, back); diff != "" {
				t.Errorf("v1beta1 there and back (-want +got):\n%s", diff)
			}
		})
	}
	hub := v1.CronTab{ObjectMeta: named, Host: "localhost", Port: "1234", TimeoutSeconds: new(int64(30))}
	var spoke v1beta1.CronTab
	var back v1.CronTab
	if err := fromHub(t.Context(), &hub, &spoke); err != nil {
		t.Fatal(err)
	}
	if err := toHub(t.Context(), &spoke, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hub, back); diff != "" {
		t.Errorf("v1 there and back (-want +got):\n%s", diff)
	}
}
