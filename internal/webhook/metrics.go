// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"runtime"
	"slices"

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

// metrics are the metrics of a converter pod. All series exist before a ruleset is served, and are
// used by pointer, so counting needs no lookup and no memory.
type metrics struct {
	registry   *prometheus.Registry
	requests   [failures]prometheus.Counter
	latency    [failures]prometheus.Observer
	converting prometheus.Observer
	inFlight   prometheus.Gauge
	admissions map[admissionResult]prometheus.Counter
	// rulesets has a series for each served ruleset.
	rulesets *prometheus.GaugeVec
	// newPair returns the metrics of a pair of versions, and unknown has those of all pairs that no
	// ruleset has.
	newPair func(from, to string) pair
	unknown pair
	// certificateExpiry is set by the Server.
	certificateExpiry func() float64
}

// target is a version to convert to, with its metrics.
type target struct {
	version string
	pairs   []pair
	unknown *pair
}

// pair has the metrics of an ordered pair of versions.
type pair struct {
	from     string
	duration prometheus.Observer
	failures [failures]prometheus.Counter
	size     prometheus.Observer
	dropped  prometheus.Counter
	// truncated counts answers in a truncated form.
	truncated prometheus.Counter
}

func (t *target) pair(from string) *pair {
	for i := range t.pairs {
		if t.pairs[i].from == from {
			return &t.pairs[i]
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
		p.dropped.Add(float64(outcome.DroppedValues))
	}
	if outcome.Omitted != nil {
		p.truncated.Inc()
	}
}

// request counts an answered call.
func (m *metrics) request(x *exchange) {
	m.requests[x.failure].Inc()
	m.latency[x.failure].Observe((clock() - x.began).Seconds())
	if x.converted > 0 {
		m.converting.Observe(x.convertDuration.Seconds())
	}
}

// unknownTarget returns a target for a version that no ruleset has.
func (m *metrics) unknownTarget(version string) *target {
	return &target{version: version, unknown: &m.unknown}
}

// newMetrics registers the metrics of a handler.
func newMetrics(options *HandlerOptions, bytes *limiters) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), certificateExpiry: func() float64 { return 0 }}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	crd := prometheus.Labels{"crd": options.CRD}

	requests := m.counter("requests_total", "ConversionReviews that were answered.", crd, "result", "failure_type")
	latency := m.histogram("request_duration_seconds", "Time from the header of a ConversionReview to its answer, waiting included.", latencyBuckets, crd, "result")
	for reason, text := range failureTypes {
		result := results[failure(reason) != noFailure]
		m.requests[reason] = requests.WithLabelValues(result, text)
		m.latency[reason] = latency.WithLabelValues(result)
	}
	m.admissions = map[admissionResult]prometheus.Counter{}
	reviews := m.counter("admission_reviews_total", "AdmissionReviews that were answered, by what they came to.", crd, "result")
	for _, result := range admissionResults {
		m.admissions[result] = reviews.WithLabelValues(string(result))
	}
	m.converting = m.histogram("request_conversion_duration_seconds", "Time that the conversions of all objects of a ConversionReview took together.", latencyBuckets, crd).WithLabelValues()
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "requests_in_flight", Help: "ConversionReviews that are being read, converted or answered, or wait for memory.", ConstLabels: crd})
	m.registry.MustRegister(m.inFlight)
	m.gauge("bytes_in_flight", "Memory that is taken for the bodies and answers of ConversionReviews.", crd, func() float64 { return float64(bytes.used()) })
	m.gauge("bytes_in_flight_limit", "Memory that may be taken for the bodies and answers of ConversionReviews.", crd, func() float64 { return float64(bytes.limit()) })
	m.rulesets = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "ruleset_info", Help: "The compiled rules that are served: one series each. Always 1.", ConstLabels: crd}, []string{"hash"})
	m.registry.MustRegister(m.rulesets)
	m.gauge("certificate_expiry_timestamp_seconds", "When the serving certificate expires, in seconds of Unix time.", crd, func() float64 { return m.certificateExpiry() })
	m.pairMetrics(crd)
	m.gauge("build_info", "What is running. Always 1.", prometheus.Labels{"version": options.BuildVersion, "goversion": runtime.Version()}, one)
	return m
}

// pairMetrics registers the metrics of pairs of versions.
func (m *metrics) pairMetrics(crd prometheus.Labels) {
	duration := m.histogram("conversion_duration_seconds", "Time that the conversion of one object took.", latencyBuckets, crd, "from", "to")
	failed := m.counter("conversion_failures_total", "Objects that could not be converted. Each fails its whole ConversionReview.", crd, "from", "to", "failure_type")
	size := m.histogram("preserved_bytes", "Size of what was preserved in an annotation, of objects that had something to preserve.", sizeBuckets, crd, "from", "to")
	dropped := m.counter("preserved_values_dropped_total", "Values that were given up because an object's annotations had no room for them.", crd, "from", "to")
	truncated := m.counter("truncated_objects_total", "Answers in which values are left out because an object's annotations had no room for them. Such objects cannot be written at this version.", crd, "from", "to")
	m.newPair = func(from, to string) pair {
		p := pair{
			from: from, duration: duration.WithLabelValues(from, to), size: size.WithLabelValues(from, to),
			dropped: dropped.WithLabelValues(from, to), truncated: truncated.WithLabelValues(from, to),
		}
		for _, reason := range objectFailures {
			p.failures[reason] = failed.WithLabelValues(from, to, failureTypes[reason])
		}
		return p
	}
	m.unknown = m.newPair(otherVersion, otherVersion)
}

// targetsOf returns the versions of rulesets, by group and version.
func (m *metrics) targetsOf(group string, rulesets []Ruleset) map[string]*target {
	targets := map[string]*target{}
	for _, versions := range pairsOf(rulesets) {
		from, to := versions[0], versions[1]
		key := group + "/" + to
		if targets[key] == nil {
			targets[key] = m.unknownTarget(to)
		}
		targets[key].pairs = append(targets[key].pairs, m.newPair(from, to))
	}
	return targets
}

// serving shows which rulesets are served.
func (m *metrics) serving(hashes []string) {
	m.rulesets.Reset()
	for _, hash := range hashes {
		m.rulesets.WithLabelValues(hash).Set(1)
	}
}

// pairsOf returns the distinct pairs of versions of all rulesets.
func pairsOf(rulesets []Ruleset) [][2]string {
	var all [][2]string
	for _, ruleset := range rulesets {
		for _, pair := range ruleset.Pairs {
			if !slices.Contains(all, pair) {
				all = append(all, pair)
			}
		}
	}
	return all
}

func (m *metrics) counter(name, help string, crd prometheus.Labels, labels ...string) *prometheus.CounterVec {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: crd}, labels)
	m.registry.MustRegister(vector)
	return vector
}

func (m *metrics) histogram(name, help string, buckets []float64, crd prometheus.Labels, labels ...string) *prometheus.HistogramVec {
	vector := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets, ConstLabels: crd}, labels)
	m.registry.MustRegister(vector)
	return vector
}

func (m *metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels}, value))
}

func one() float64 { return 1 }

// handler serves MetricsPath only.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
