// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests what Prometheus and Grafana are given: the alerts of
// config/components/prometheus and the dashboard of config/components/grafana.
//
// Alerts are played on series that testdata writes down, in the format of
// promtool: `promtool test rules` reads the same files, and make promtool has it do
// so. Here the engine of Prometheus evaluates the rules, without the rest of
// promtool, whose service discoveries take minutes to compile.
//
// Every metric and label in an expression must be one that is exported. What is
// exported is read from the tables of api/docs/metrics.md, which other tests hold
// against the programs themselves, and against a real API server.
package monitoring
