// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Values of the latest migration, from the status. Its pod may have lived for seconds only, so
// that Prometheus never scraped it; these values stay until the next migration starts.
var (
	objectsMetric = policyMetric("migration_objects",
		"Objects of the latest migration, by what became of them.", "outcome")
	foundMetric = policyMetric("migration_objects_found",
		"Objects that the latest migration has found so far.")
	failuresMetric = policyMetric("migration_listed_failures",
		"The first objects, ten at most, that the latest migration could not rewrite, by reason. All are counted in migration_objects.", "reason")
	migrationMetric = policyMetric("migration_state",
		"The latest migration: 1 for the state that it is in, 0 for the others.", "state")
	stepMetric = policyMetric("migration_step_info",
		"What the latest migration is at, while it goes on. Always 1.", "step")
	waitingMetric = policyMetric("migration_waiting",
		"1 while the latest migration stalls and status.migration.message says why, else 0.")
	startMetric = policyMetric("migration_start_timestamp_seconds",
		"When the latest migration started, in seconds of Unix time.")
	endMetric = policyMetric("migration_end_timestamp_seconds",
		"When the latest migration ended, in seconds of Unix time; absent while it goes on.")
	estimateMetric = policyMetric("migration_estimated_end_timestamp_seconds",
		"When the latest migration ends if it goes on as fast as lately, in seconds of Unix time.")
)

var migrationMetrics = []*prometheus.Desc{
	objectsMetric, foundMetric, failuresMetric, migrationMetric, stepMetric, waitingMetric, startMetric, endMetric, estimateMetric,
}

// migrationStates are all states, so that a query finds each.
var migrationStates = []v1alpha1.MigrationState{
	v1alpha1.MigrationRunning, v1alpha1.MigrationSucceeded, v1alpha1.MigrationFailed,
	v1alpha1.MigrationSuperseded, v1alpha1.MigrationCancelled,
}

func collectMigration(last *v1alpha1.MigrationStatus, set setGauge) {
	set(foundMetric, float64(last.Total))
	set(objectsMetric, float64(last.Rewritten), "rewritten")
	set(objectsMetric, float64(last.Unchanged), "unchanged")
	set(objectsMetric, float64(last.Failed), "failed")
	set(waitingMetric, asFloat(last.State == v1alpha1.MigrationRunning && last.Message != ""))
	for _, state := range migrationStates {
		set(migrationMetric, asFloat(last.State == state), string(state))
	}
	if last.Step != "" {
		set(stepMetric, 1, string(last.Step))
	}
	for reason, count := range listedFailures(last) {
		set(failuresMetric, count, reason)
	}
	for metric, at := range map[*prometheus.Desc]*metav1.Time{
		startMetric: last.StartTime, endMetric: last.CompletionTime, estimateMetric: last.EstimatedCompletion,
	} {
		if at != nil {
			set(metric, float64(at.Unix()))
		}
	}
}

// listedFailures counts failures by reason.
func listedFailures(last *v1alpha1.MigrationStatus) map[string]float64 {
	counts := map[string]float64{}
	for _, failure := range last.Failures {
		counts[string(failure.Reason)]++
	}
	return counts
}
