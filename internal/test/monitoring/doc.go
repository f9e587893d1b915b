// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests what Prometheus and Grafana are given: the alerts of
// config/components/prometheus and the dashboard of config/components/grafana.
//
// Alerts are played on series that testdata writes down: make promtool has
// promtool itself do so. Here it is checked whether each of them is.
//
// Every metric and label in an expression must be one that is exported. What is
// exported is read from the tables of api/docs/metrics.md, which other tests hold
// against the programs themselves, and against a real API server.
package monitoring
