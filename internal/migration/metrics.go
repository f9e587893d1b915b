// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

const (
	// metricsNamespace is the prefix of the names of our metrics.
	metricsNamespace = "conversion_operator_migration"
	// MetricsPath is the path that Prometheus scrapes.
	MetricsPath = "/metrics"
	// noCode is the code of a patch without an answer.
	noCode = "none"
)

var outcomeNames = map[outcome]string{rewritten: "rewritten", current: "current", gone: "gone", failed: "failed"}

var reasons = []v1alpha1.MigrationFailureReason{
	v1alpha1.FailureConversionFailed, v1alpha1.FailureInvalid, v1alpha1.FailureAdmissionDenied, v1alpha1.FailureTooLarge, v1alpha1.FailureNamespaceTerminating,
	v1alpha1.FailureConflict, v1alpha1.FailureNotFound, v1alpha1.FailureUnavailable, v1alpha1.FailureUnreadable, v1alpha1.FailureRefused,
}

// patchBuckets begin with the time for a small object on an idle API server, and end with the
// timeout of API servers.
var patchBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Metrics are the metrics of a migration pod. The pod may exist for seconds only; the record has
// what must outlive it. A nil Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry

	objects   map[outcome]prometheus.Counter
	failures  map[v1alpha1.MigrationFailureReason]prometheus.Counter
	patches   *prometheus.CounterVec
	latency   prometheus.Histogram
	inFlight  prometheus.Gauge
	limit     prometheus.Gauge
	throttled prometheus.Counter

	// Values of the record.
	states  map[contract.State]prometheus.Gauge
	found   prometheus.Gauge
	done    prometheus.Gauge
	waiting prometheus.Gauge
	started prometheus.Gauge
}

// NewMetrics registers the metrics of a run for the named CustomResourceDefinition.
func NewMetrics(crd, buildVersion string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		objects:  map[outcome]prometheus.Counter{}, failures: map[v1alpha1.MigrationFailureReason]prometheus.Counter{}, states: map[contract.State]prometheus.Gauge{},
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := m.gauges("build_info", "What is running. Always 1.", nil, "version", "goversion")
	build.WithLabelValues(buildVersion, runtime.Version()).Set(1)
	m.registerWork(prometheus.Labels{"crd": crd})
	m.registerRecord(prometheus.Labels{"crd": crd})
	return m
}

func (m *Metrics) registerWork(crd prometheus.Labels) {
	objects := m.counters("objects_total", "Objects that this pod has finished, by outcome.", crd, "outcome")
	for outcome, name := range outcomeNames {
		m.objects[outcome] = objects.WithLabelValues(name)
	}
	failures := m.counters("object_failures_total", "Objects that this pod could not rewrite, by the reason that the record gives.", crd, "reason")
	for _, reason := range reasons {
		m.failures[reason] = failures.WithLabelValues(string(reason))
	}
	m.patches = m.counters("patches_total", "Patches that this pod sent, dry runs excepted, by the HTTP status of the answer; none without an answer.", crd, "code")
	for _, code := range []int{http.StatusOK, http.StatusConflict, http.StatusTooManyRequests} {
		m.patches.WithLabelValues(strconv.Itoa(code))
	}
	m.latency = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: metricsNamespace, Name: "patch_duration_seconds",
		Help: "Time from sending a patch to its answer.", Buckets: patchBuckets, ConstLabels: crd})
	m.registry.MustRegister(m.latency)
	m.inFlight = m.gauges("patches_in_flight", "Patches that are in flight, or are about to be sent.", crd).WithLabelValues()
	m.limit = m.gauges("patches_in_flight_limit", "Patches that may be in flight, which follows from the latency of the API server and spec.migration.pace, and is bounded.", crd).WithLabelValues()
	m.throttled = m.counters("throttled_seconds_total", "Time that patches were held back, together, because the API server asked for it or by spec.migration.maxWritesPerSecond.", crd).WithLabelValues()
}

func (m *Metrics) registerRecord(crd prometheus.Labels) {
	all := m.gauges("state", "How far the run is: 1 for the state that it is in, 0 for the others.", crd, "state")
	for _, state := range contract.States {
		m.states[state] = all.WithLabelValues(string(state))
	}
	m.found = m.gauges("objects_found", "Objects of the run, including those of earlier pods: an estimate until it has listed all.", crd).WithLabelValues()
	m.done = m.gauges("objects_done", "Objects of the run that are finished, with any outcome.", crd).WithLabelValues()
	m.waiting = m.gauges("waiting", "1 while the run waits and will continue by itself, as while patches fail because of infrastructure errors; else 0.", crd).WithLabelValues()
	m.started = m.gauges("start_timestamp_seconds", "When the run started, in seconds of Unix time.", crd).WithLabelValues()
}

func (m *Metrics) counters(name, help string, crd prometheus.Labels, labels ...string) *prometheus.CounterVec {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metricsNamespace, Name: name, Help: help, ConstLabels: crd}, labels)
	m.registry.MustRegister(vector)
	return vector
}

func (m *Metrics) gauges(name, help string, crd prometheus.Labels, labels ...string) *prometheus.GaugeVec {
	vector := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: metricsNamespace, Name: name, Help: help, ConstLabels: crd}, labels)
	m.registry.MustRegister(vector)
	return vector
}

// Handler serves MetricsPath only.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}

// finished counts an object with its outcome.
func (m *Metrics) finished(r result) {
	if m == nil {
		return
	}
	m.objects[r.outcome].Inc()
	if r.outcome == failed {
		m.failures[r.reason].Inc()
	}
}

// setInFlight exposes how many patches are in flight, and how many may be.
func (m *Metrics) setInFlight(inFlight, limit int) {
	if m != nil {
		m.inFlight.Set(float64(inFlight))
		m.limit.Set(float64(limit))
	}
}

// addThrottled counts the time that a patch waits.
func (m *Metrics) addThrottled(pause time.Duration) {
	if m != nil {
		m.throttled.Add(pause.Seconds())
	}
}

// expose sets the metrics that follow the record.
func (m *Metrics) expose(record *contract.Record) {
	if m == nil {
		return
	}
	for state, gauge := range m.states {
		gauge.Set(oneIf(state == record.State))
	}
	m.found.Set(float64(record.Total))
	m.done.Set(float64(record.Done()))
	m.waiting.Set(oneIf(record.Waiting != ""))
	m.started.Set(float64(record.StartTime.Unix()))
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// patched counts a patch that was sent, and its answer.
func (m *Metrics) patched(patch Patch, took time.Duration, err error) {
	if m == nil || patch.DryRun {
		return
	}
	m.latency.Observe(took.Seconds())
	m.patches.WithLabelValues(codeOf(err)).Inc()
}

func codeOf(err error) string {
	if err == nil {
		return strconv.Itoa(http.StatusOK)
	}
	if status := statusOf(err); status != nil {
		return strconv.Itoa(int(status.Code))
	}
	return noCode
}
