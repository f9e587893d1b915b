// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

var (
	versionMetric = policyMetric("version_state",
		"Versions of the CustomResourceDefinition: 1 for what is true of one, 0 for what is not.", "version", "state")
	retirementMetric = policyMetric("retirement_info",
		"Versions that are to go, and how far. Always 1.", "version", "action")
	requestedMetric = policyMetric("version_last_requested_timestamp_seconds",
		"The hour in which it was last noticed that somebody had asked for a version that is to go, in seconds of Unix time.", "version")
)

var versionMetrics = []*prometheus.Desc{versionMetric, retirementMetric, requestedMetric}

func tellVersions(policy *v1alpha1.ConversionPolicy, tell tell) {
	for _, version := range policy.Status.Versions {
		tell(versionMetric, number(version.Served), version.Name, "served")
		tell(versionMetric, number(version.Storage), version.Name, "storage")
		tell(versionMetric, number(version.Stored), version.Name, "stored")
		tell(versionMetric, number(version.Deprecated), version.Name, "deprecated")
		tell(versionMetric, number(version.SafeToUnserve), version.Name, "safe_to_unserve")
		tell(versionMetric, number(version.SafeToRemove), version.Name, "safe_to_remove")
		if version.LastRequested != nil {
			tell(requestedMetric, float64(version.LastRequested.Unix()), version.Name)
		}
	}
	for _, retirement := range policy.Spec.Retirement {
		tell(retirementMetric, 1, string(retirement.Version), string(cmp.Or(retirement.Action, v1alpha1.RetirementReport)))
	}
}
