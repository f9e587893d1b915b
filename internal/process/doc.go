// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process has what every program of this project does before its work: it logs, stays below the
// memory limit of its container, and knows which build it is.
package process

// DefaultMetricsAddress has the port that Prometheus configurations commonly use.
const DefaultMetricsAddress = ":8080"
