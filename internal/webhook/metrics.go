// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// namespace is the prefix of the names of our metrics.
const namespace = "conversion_operator_webhook"

// otherVersion replaces versions that no ruleset has in labels, so that requests cannot create
// label values.
const otherVersion = "other"

// failure is why a review or an object failed. failureTypes has its label value.
type failure int

const (
	noFailure failure = iota
	failureConvert
	failureInvalidJSON
	failureWrongKind
	failureUnknownVersion
	failureOverflow
	failureTruncated
	failureOverBudget
	failureInvalidReview
	failureBodyTooLarge
	failureCanceled
	failureOverloaded
	failureUnknownRuleset
	failurePanic
	failures
)

var failureTypes = [failures]string{
	noFailure:             "",
	failureConvert:        "convert_error",
	failureInvalidJSON:    "invalid_json",
	failureWrongKind:      "wrong_kind",
	failureUnknownVersion: "unknown_version",
	failureOverflow:       "overflow",
	failureTruncated:      "truncated",
	failureOverBudget:     "over_budget",
	failureInvalidReview:  "invalid_review",
	failureBodyTooLarge:   "body_too_large",
	failureCanceled:       "canceled",
	failureOverloaded:     "overloaded",
	failureUnknownRuleset: "unknown_ruleset",
	failurePanic:          "panic",
}

// causeOf are the causes that a ConversionPolicy shows for failures of objects.
var causeOf = [failures]conversion.Cause{
	failureConvert:        conversion.CauseOther,
	failureInvalidJSON:    conversion.CauseInvalidJSON,
	failureWrongKind:      conversion.CauseWrongKind,
	failureUnknownVersion: conversion.CauseUnknownVersion,
	failureOverflow:       conversion.CauseAnnotationsTooLarge,
	failureTruncated:      conversion.CauseTruncated,
	failureOverBudget:     conversion.CauseOverBudget,
	failureCanceled:       CauseTooSlow,
	failurePanic:          CausePanic,
}

// objectFailures are the failures that an object can have. The others are failures of reviews.
var objectFailures = []failure{
	failureConvert, failureInvalidJSON, failureWrongKind, failureUnknownVersion, failureOverflow, failureTruncated, failureOverBudget, failureCanceled, failurePanic}

// results are the values of the label result: false is success, true is failure.
var results = map[bool]string{false: "success", true: "failure"}

var (
	// latencyBuckets start below the time for a small object, and end with the 30 s after which API
	// servers give up. The latency budget is 50 ms, plus 8 ms for each object.
	latencyBuckets = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30}
	// sizeBuckets end with the limit for all annotations of an object.
	sizeBuckets = []float64{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10}
)

// metrics are the metrics of a converter pod. All series of a kind exist before a ruleset of it is
// served, and are used by pointer, so counting needs no lookup and no memory.
type metrics struct {
	registry *prometheus.Registry

	latency, converting, duration, size *prometheus.HistogramVec
	// vectors are all of them.
	vectors []*prometheus.MetricVec
	// certificateExpiry is set by the Server.
	certificateExpiry func() float64
}

// kindMetrics are the metrics of a kind. Counters are only numbers (metrics_scrape.go): a counter of
// the library takes 500 bytes, and a pod may serve a thousand kinds.
type kindMetrics struct {
	requests   [failures]atomic.Int64
	latency    [failures]prometheus.Observer
	converting prometheus.Observer
	admissions map[admissionResult]*atomic.Int64
	// newPair returns the metrics of a pair of versions.
	newPair func(from, to string) *pair
	// unknown has the metrics of all pairs that no ruleset has.
	unknown *pair

	mu sync.Mutex
	// pairs are those of the rulesets.
	pairs map[[2]string]*pair
}

// target is a version to convert to, with its metrics.
type target struct {
	version string
	pairs   []*pair
	unknown *pair
}

// pair has the metrics of an ordered pair of versions.
type pair struct {
	from, to string
	duration prometheus.Observer
	size     prometheus.Observer
	failures [failures]atomic.Int64
	dropped  atomic.Int64
	// truncated counts answers in a truncated form.
	truncated atomic.Int64
}

func (t *target) pair(from string) *pair {
	for _, pair := range t.pairs {
		if pair.from == from {
			return pair
		}
	}
	return t.unknown
}

// countPreserved counts the data that a conversion preserved.
func (p *pair) countPreserved(outcome *conversion.Outcome) {
	if outcome.PreservedBytes > 0 {
		p.size.Observe(float64(outcome.PreservedBytes))
	}
	if outcome.DroppedValues > 0 {
		p.dropped.Add(int64(outcome.DroppedValues))
	}
	if outcome.Omitted != nil {
		p.truncated.Add(1)
	}
}

// request counts an answered call.
func (m *kindMetrics) request(x *exchange) {
	m.requests[x.failure].Add(1)
	m.latency[x.failure].Observe((clock() - x.began).Seconds())
	if x.converted > 0 {
		m.converting.Observe(x.convertDuration.Seconds())
	}
}

// unknownTarget returns a target for a version that no ruleset has.
func (m *kindMetrics) unknownTarget(version string) *target {
	return &target{version: version, unknown: m.unknown}
}

// newMetrics registers the metrics of a handler.
func newMetrics(h *Handler) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), certificateExpiry: func() float64 { return 0 }}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), scraped{h})
	m.latency = m.histogram("request_duration_seconds", "Time from the header of a ConversionReview to its answer, waiting included.", latencyBuckets, "result")
	m.converting = m.histogram("request_conversion_duration_seconds", "Time that the conversions of all objects of a ConversionReview took together.", latencyBuckets)
	m.duration = m.histogram("conversion_duration_seconds", "Time that the conversion of one object took.", latencyBuckets, "from", "to")
	m.size = m.histogram("preserved_bytes", "Size of what was preserved in an annotation, of objects that had something to preserve.", sizeBuckets, "from", "to")
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What is running. Always 1.",
		ConstLabels: prometheus.Labels{"version": h.options.BuildVersion, "goversion": runtime.Version()}}, one))
	return m
}

// newKind returns the metrics of a kind.
func (m *metrics) newKind(crd string) *kindMetrics {
	k := &kindMetrics{admissions: map[admissionResult]*atomic.Int64{}, pairs: map[[2]string]*pair{}, converting: m.converting.WithLabelValues(crd)}
	for reason := range failures {
		k.latency[reason] = m.latency.WithLabelValues(crd, results[reason != noFailure])
	}
	for _, result := range admissionResults {
		k.admissions[result] = new(atomic.Int64)
	}
	k.newPair = func(from, to string) *pair {
		return &pair{from: from, to: to, duration: m.duration.WithLabelValues(crd, from, to), size: m.size.WithLabelValues(crd, from, to)}
	}
	k.unknown = k.newPair(otherVersion, otherVersion)
	return k
}

// addTargets adds the versions of a ruleset to the targets of its kind.
func (m *kindMetrics) addTargets(targets map[string]*target, ruleset Ruleset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, versions := range ruleset.Pairs {
		from, to := versions[0], versions[1]
		if m.pairs[versions] == nil {
			m.pairs[versions] = m.newPair(from, to)
		}
		key := ruleset.Group + "/" + to
		if targets[key] == nil {
			targets[key] = m.unknownTarget(to)
		}
		if target := targets[key]; target.pair(from) == m.unknown {
			target.pairs = append(target.pairs, m.pairs[versions])
		}
	}
}

// remove removes the histograms of a kind.
func (m *metrics) remove(crd string) {
	for _, vector := range m.vectors {
		vector.DeletePartialMatch(prometheus.Labels{"crd": crd})
	}
}

func (m *metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	vector := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, append([]string{"crd"}, labels...))
	m.registry.MustRegister(vector)
	m.vectors = append(m.vectors, vector.MetricVec)
	return vector
}

func one() float64 { return 1 }

// handler serves MetricsPath only.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
