// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import "testing"

func TestRequestOf(t *testing.T) {
	cases := map[string]string{
		`code="200",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"`:                          "POST events",
		`code="200",dry_run="",group="conversion-operator.io",resource="conversionpolicies",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"`: "PATCH conversionpolicies/status",
		`code="201",dry_run="All",group="probe.conversion-operator.io",resource="conversionprobes",scope="resource",subresource="",verb="POST",version="v1"`:       "POST conversionprobes in a dry run",
		`code="200",dry_run="",group="scale-0001.example.com",resource="clusters",scope="cluster",subresource="",verb="LIST",version="v1"`:                         "LIST custom resources",
		`code="0",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"`:                                                    "",
		`code="200",dry_run="",group="",resource="",scope="",subresource="/healthz",verb="GET",version=""`:                                                         "",
	}
	for labels, want := range cases {
		if got := requestOf(labels); got != want {
			t.Errorf("%s is %q, want %q", labels, got, want)
		}
	}
}
