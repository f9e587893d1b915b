// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends OpenTelemetry traces of what the manager and migrations
// do, where a client wants them. By default no one does: nothing is started then,
// nothing is allocated, and every function runs as if this package was not there.
//
// There are few spans on purpose: one for each phase of a reconciliation or a
// migration, and for each request of the manager to the API server on its behalf.
// Objects have none: there may be millions.
//
// Converter pods have no traces. No one should pay for them in the path of every
// request; their metrics tell how long conversions take.
package tracing
