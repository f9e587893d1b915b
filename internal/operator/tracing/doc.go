// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends OpenTelemetry traces of the manager and of migrations. It is disabled by
// default: then it starts and allocates nothing, and each function only calls its argument.
//
// There are few spans: one for each phase of a reconciliation or a migration, and one for each of
// their requests to the API server. Objects have none, because there may be millions.
//
// Converter pods have no traces, which would cost time in each conversion. Their metrics show how
// long conversions take.
package tracing
