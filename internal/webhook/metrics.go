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

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
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

// causeOf are the causes that a ConversionPolicy shows for failures of objects. The other failures are those of
// reviews.
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

// results are the values of the label result: false is success, true is failure.
var results = map[bool]string{false: "success", true: "failure"}

// metrics are the metrics of a converter pod.
type metrics struct {
	registry *prometheus.Registry
	// certificateExpiry is set by the Server.
	certificateExpiry func() float64
}

// kindMetrics are the metrics of a kind. They are only numbers, used by pointer, so counting needs no
// lookup and no memory. metrics_scrape.go exports them: a counter of the library takes 500 bytes, and
// a pod may serve a thousand kinds.
type kindMetrics struct {
	requests [failures]atomic.Int64
	// latency is that of requests that succeeded (false) or failed (true).
	latency    map[bool]*histogram
	converting *histogram
	admissions map[admissionResult]*atomic.Int64
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
	duration *histogram
	size     *histogram
	failures [failures]atomic.Int64
	dropped  atomic.Int64
	// truncated counts answers in a truncated form.
	truncated atomic.Int64
}

func newPair(from, to string) *pair {
	return &pair{from: from, to: to, duration: newHistogram(latencyBounds), size: newHistogram(sizeBounds)}
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
		p.size.observe(int64(outcome.PreservedBytes))
	}
	if outcome.DroppedValues > 0 {
		p.dropped.Add(int64(outcome.DroppedValues))
	}
	if outcome.Omitted != nil {
		p.truncated.Add(1)
	}
}

// request counts an answered call. Histograms have only calls of API servers: the operator probes
// each kind in each pod, and would create all series of kinds that are not in use.
func (m *kindMetrics) request(x *exchange) {
	m.requests[x.failure].Add(1)
	if x.probe {
		return
	}
	m.latency[x.failure != noFailure].observe(int64(clock() - x.began))
	if x.converted > 0 {
		m.converting.observe(int64(x.convertDuration))
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
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What is running. Always 1.",
		ConstLabels: prometheus.Labels{"version": h.options.BuildVersion, "goversion": runtime.Version()}}, one))
	return m
}

func newKindMetrics() *kindMetrics {
	m := &kindMetrics{
		latency:    map[bool]*histogram{false: newHistogram(latencyBounds), true: newHistogram(latencyBounds)},
		converting: newHistogram(latencyBounds),
		admissions: map[admissionResult]*atomic.Int64{},
		unknown:    newPair(otherVersion, otherVersion),
		pairs:      map[[2]string]*pair{},
	}
	for _, result := range admissionResults {
		m.admissions[result] = new(atomic.Int64)
	}
	return m
}

// addTargets adds the versions of a ruleset to the targets of its kind.
func (m *kindMetrics) addTargets(targets map[string]*target, ruleset Ruleset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, versions := range ruleset.Pairs {
		from, to := versions[0], versions[1]
		if m.pairs[versions] == nil {
			m.pairs[versions] = newPair(from, to)
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

func one() float64 { return 1 }

// handler serves MetricsPath only.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: metricsScrapes}))
	return mux
}
