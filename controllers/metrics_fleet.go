// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// FleetMetrics exports the statuses of fleets to Prometheus, like PolicyMetrics.
type FleetMetrics struct {
	// Fleets reads fleets from the cache.
	Fleets client.Reader
	Log    logr.Logger
}

func fleetMetric(name, help string, labels ...string) *prometheus.Desc {
	return metricOf("fleet", name, help, labels...)
}

var (
	fleetConditionMetric = fleetMetric("status_condition",
		"Conditions of a fleet: 1 for the status that one has, 0 for the two others.", "condition", "status")
	fleetPodsMetric = fleetMetric("converter_pods",
		"Converter pods of a fleet: all, and those that are ready.", "state")
	fleetPoliciesMetric = fleetMetric("policies",
		"Policies that a fleet serves, or is to serve.")
	fleetCertificateMetric = fleetMetric("certificate_expiry_timestamp_seconds",
		"When the serving certificate of a fleet expires, in seconds of Unix time.")
	fleetAuthorityMetric = fleetMetric("ca_expiry_timestamp_seconds",
		"When the first of the trusted certificate authorities of a fleet expires, in seconds of Unix time.")
)

// Describe implements prometheus.Collector.
func (FleetMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{fleetConditionMetric, fleetPodsMetric, fleetPoliciesMetric, fleetCertificateMetric, fleetAuthorityMetric} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (m FleetMetrics) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	fleets := &v1alpha1.ConverterFleetList{}
	if err := m.Fleets.List(ctx, fleets, client.UnsafeDisableDeepCopy); err != nil {
		m.Log.Error(err, "Fleets are missing from the metrics")
		return
	}
	for i := range fleets.Items {
		collectFleet(&fleets.Items[i].Status, gaugesOf(fleets.Items[i].Name, metrics))
	}
}

// collectFleet exports the known values of one fleet.
func collectFleet(status *v1alpha1.ConverterFleetStatus, set setGauge) {
	collectConditions(fleetConditionMetric, status.Conditions, set)
	set(fleetPodsMetric, float64(status.Replicas), "all")
	set(fleetPodsMetric, float64(status.ReadyReplicas), "ready")
	set(fleetPoliciesMetric, float64(status.Policies))
	if certificate := status.Certificate; certificate != nil {
		set(fleetCertificateMetric, float64(certificate.NotAfter.Unix()))
		set(fleetAuthorityMetric, float64(certificate.CANotAfter.Unix()))
	}
}
