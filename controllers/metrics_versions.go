// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

var (
	versionMetric = policyMetric("version_state",
		"Versions of the CustomResourceDefinition: 1 for what is true of one, 0 for what is not.", "version", "state")
	retirementMetric = policyMetric("retirement_info",
		"Versions that are to go, and how far. Always 1.", "version", "action")
	requestedMetric = policyMetric("version_last_requested_timestamp_seconds",
		"The hour in which it was last noticed that a client had asked for a version that is to go, in seconds of Unix time.", "version")
)

// Values of status.preservedData. They are counted from time to time only, so an alert on them
// has to check the time of the count too.
var (
	holdersMetric = policyMetric("preserved_objects",
		"Objects that hold values of a version in annotations, when they were counted last.", "version")
	oversizedMetric = policyMetric("oversized_objects",
		"Objects, 20 at most, that are known to hold more for one version than their annotations have room for at another, where they are read in a truncated form.")
	countedMetric = policyMetric("preserved_counted_timestamp_seconds",
		"When preserved data was counted last, in seconds of Unix time.")
	countedAllMetric = policyMetric("preserved_count_complete",
		"1 if all objects were counted, by the rules of now; else 0.")
)

var versionMetrics = []*prometheus.Desc{
	versionMetric, retirementMetric, requestedMetric, holdersMetric, countedMetric, countedAllMetric, oversizedMetric,
}

func collectPreserved(counted *v1alpha1.PreservedDataStatus, revision string, set setGauge) {
	for i := range counted.Versions {
		set(holdersMetric, float64(counted.Versions[i].Objects), counted.Versions[i].Version)
	}
	set(countedMetric, float64(counted.Time.Unix()))
	set(countedAllMetric, asFloat(counted.Complete && !counted.Outdated(revision)))
}

// collectOversized exports a value only for policies with rules; for others it is unknown.
func collectOversized(policy *v1alpha1.ConversionPolicy, set setGauge) {
	if policy.Spec.Converter.Declarative == nil {
		return
	}
	objects := sets.New[string]()
	for _, known := range policy.Status.OversizedObjects {
		objects.Insert(known.Object)
	}
	set(oversizedMetric, float64(objects.Len()))
}

func collectVersions(policy *v1alpha1.ConversionPolicy, set setGauge) {
	crd := cmp.Or(policy.Status.CRD, &v1alpha1.CRDStatus{})
	for _, version := range policy.Status.Versions {
		set(versionMetric, asFloat(slices.Contains(crd.ServedVersions, version.Name)), version.Name, "served")
		set(versionMetric, asFloat(crd.StorageVersion == version.Name), version.Name, "storage")
		set(versionMetric, asFloat(slices.Contains(crd.StoredVersions, version.Name)), version.Name, "stored")
		set(versionMetric, asFloat(version.SafeToUnserve), version.Name, "safe_to_unserve")
		set(versionMetric, asFloat(version.SafeToRemove), version.Name, "safe_to_remove")
	}
	for _, version := range policy.Status.Retirement {
		if version.LastRequested != nil {
			set(requestedMetric, float64(version.LastRequested.Unix()), version.Version)
		}
	}
	for _, retirement := range policy.Spec.Retirement {
		set(retirementMetric, 1, string(retirement.Version), string(cmp.Or(retirement.Action, v1alpha1.RetirementKeep)))
	}
}
