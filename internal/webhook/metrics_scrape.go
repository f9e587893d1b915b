// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// scraped are the metrics of kinds, which are read when they are scraped.
//
// A pod may serve a thousand kinds, most of which are idle. A series exists from the start only if
// an alert or the dashboard needs it: a rate misses the first increment of a series that begins with
// 1. Alerts about failures need none, because they fire for failures that continue. All other
// counters and histograms of a kind exist once they have counted something.
type scraped struct{ handler *Handler }

var (
	inFlight       = describeMetric("requests_in_flight", "ConversionReviews that are being read, converted or answered, or wait for memory or a processor.")
	bytesInFlight  = describeMetric("bytes_in_flight", "Memory that reviews take for their bodies and answers, and to convert.")
	bytesLimit     = describeMetric("bytes_in_flight_limit", "Memory that reviews may take for their bodies and answers, and to convert.")
	expiry         = describeMetric("certificate_expiry_timestamp_seconds", "When the serving certificate expires, in seconds of Unix time.")
	servedRulesets = describeMetric("ruleset_info", "The compiled rules that are served: one series each. Always 1.", "hash")
	failedRulesets = prometheus.NewDesc(namespace+"_rulesets_failed", "Rulesets that the pod has and cannot serve.", nil, nil)

	requestsTotal   = describeMetric("requests_total", "ConversionReviews that were answered.", "result", "failure_type")
	admissionsTotal = describeMetric("admission_reviews_total", "AdmissionReviews that were answered, by what they came to.", "result")
	failedTotal     = describeMetric("conversion_failures_total", "Objects that could not be converted. Each fails its whole ConversionReview.", "from", "to", "failure_type")
	droppedTotal    = describeMetric("preserved_values_dropped_total", "Values that were given up because an object's annotations had no room for them.", "from", "to")
	truncatedTotal  = describeMetric("truncated_objects_total", "Answers in which values are left out because an object's annotations had no room for them. Such objects cannot be written at this version.", "from", "to")

	requestDuration    = describeMetric("request_duration_seconds", "Time from the header of a ConversionReview to its answer, waiting included.", "result")
	convertingDuration = describeMetric("request_conversion_duration_seconds", "Time that the conversions of all objects of a ConversionReview took together.")
	conversionDuration = describeMetric("conversion_duration_seconds", "Time that the conversion of one object took.", "from", "to")
	preservedBytes     = describeMetric("preserved_bytes", "Size of what was preserved in an annotation, of objects that had something to preserve.", "from", "to")
)

func describeMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, append([]string{"crd"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (s scraped) Describe(descriptions chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{inFlight, bytesInFlight, bytesLimit, expiry, servedRulesets, failedRulesets,
		requestsTotal, admissionsTotal, failedTotal, droppedTotal, truncatedTotal,
		requestDuration, convertingDuration, conversionDuration, preservedBytes} {
		descriptions <- each
	}
}

// Collect implements prometheus.Collector.
func (s scraped) Collect(metrics chan<- prometheus.Metric) {
	served := s.handler.served.Load()
	for _, kind := range served.kinds {
		s.collectKind(metrics, kind)
	}
	if len(served.kinds) != 1 {
		s.collectKind(metrics, served.other)
	}
	metrics <- prometheus.MustNewConstMetric(failedRulesets, prometheus.GaugeValue, float64(len(served.failed)))
	for hash, ruleset := range served.rulesets {
		metrics <- prometheus.MustNewConstMetric(servedRulesets, prometheus.GaugeValue, 1, ruleset.CRD, hash)
	}
}

func (s scraped) collectKind(metrics chan<- prometheus.Metric, kind *kind) {
	gauge := func(of *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, kind.crd)
	}
	// Counters of zero are left out, unless they exist from the start.
	counter := func(of *prometheus.Desc, exists bool, value *atomic.Int64, labels ...string) {
		if count := value.Load(); exists || count > 0 {
			metrics <- prometheus.MustNewConstMetric(of, prometheus.CounterValue, float64(count), append([]string{kind.crd}, labels...)...)
		}
	}
	used, limit := s.handler.limiters.bytes(&kind.held)
	gauge(inFlight, float64(kind.inFlight.Load()))
	gauge(bytesInFlight, float64(used))
	gauge(bytesLimit, float64(limit))
	gauge(expiry, s.handler.metrics.certificateExpiry())
	for reason, text := range failureTypes {
		reason := failure(reason)
		counter(requestsTotal, reason == noFailure || reason == failureOverloaded, &kind.metrics.requests[reason], results[reason != noFailure], text)
	}
	for failed, histogram := range kind.metrics.latency {
		histogram.collect(metrics, requestDuration, kind.crd, results[failed])
	}
	kind.metrics.converting.collect(metrics, convertingDuration, kind.crd)
	for result, count := range kind.metrics.admissions {
		counter(admissionsTotal, false, count, string(result))
	}
	for _, pair := range kind.metrics.allPairs() {
		pair.duration.collect(metrics, conversionDuration, kind.crd, pair.from, pair.to)
		pair.size.collect(metrics, preservedBytes, kind.crd, pair.from, pair.to)
		for reason, cause := range causeOf {
			if cause != "" {
				counter(failedTotal, false, &pair.failures[reason], pair.from, pair.to, failureTypes[reason])
			}
		}
		counter(droppedTotal, pair != kind.metrics.unknown, &pair.dropped, pair.from, pair.to)
		counter(truncatedTotal, false, &pair.truncated, pair.from, pair.to)
	}
}

// allPairs returns the pairs of the rulesets, and the one of all others.
func (m *kindMetrics) allPairs() []*pair {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(slices.Collect(maps.Values(m.pairs)), m.unknown)
}
