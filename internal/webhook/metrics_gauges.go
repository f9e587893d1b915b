// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import "github.com/prometheus/client_golang/prometheus"

// gauges are the metrics that are read when they are scraped.
type gauges struct{ handler *Handler }

var (
	inFlight       = gauge("requests_in_flight", "ConversionReviews that are being read, converted or answered, or wait for memory or a processor.")
	bytesInFlight  = gauge("bytes_in_flight", "Memory that is taken for the bodies and answers of ConversionReviews.")
	bytesLimit     = gauge("bytes_in_flight_limit", "Memory that may be taken for the bodies and answers of ConversionReviews.")
	expiry         = gauge("certificate_expiry_timestamp_seconds", "When the serving certificate expires, in seconds of Unix time.")
	servedRulesets = gauge("ruleset_info", "The compiled rules that are served: one series each. Always 1.", "hash")
)

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, append([]string{"crd"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{inFlight, bytesInFlight, bytesLimit, expiry, servedRulesets} {
		descriptions <- each
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(metrics chan<- prometheus.Metric) {
	send := func(of *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
	}
	sendKind := func(kind *kind) {
		used, limit := g.handler.limiters.bytes(&kind.held)
		send(inFlight, float64(kind.inFlight.Load()), kind.crd)
		send(bytesInFlight, float64(used), kind.crd)
		send(bytesLimit, float64(limit), kind.crd)
		send(expiry, g.handler.metrics.certificateExpiry(), kind.crd)
	}
	served := g.handler.served.Load()
	for _, kind := range served.kinds {
		sendKind(kind)
	}
	if len(served.kinds) != 1 {
		sendKind(served.other)
	}
	for hash, ruleset := range served.rulesets {
		send(servedRulesets, 1, ruleset.CRD, hash)
	}
}
