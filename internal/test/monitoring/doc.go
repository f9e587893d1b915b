// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts of config/components/prometheus and the dashboard of
// config/components/grafana.
//
// `make promtool` tests the alerts on the series in testdata. This package checks that each alert
// has such a test.
//
// Every metric and label in an expression must be exported. The exported ones are those in the
// tables of api/docs/metrics.md, which other tests compare with the programs and with a real API
// server.
package monitoring
