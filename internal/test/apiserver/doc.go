// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests the converter with a real API server, which decides when a conversion
// happens, what becomes of the response, and what users see.
//
// There is no operator. Each scenario has its own kind, whose rules are compiled like a policy's,
// and a converter that runs like a converter pod. Users act on the kind at all of its versions, and
// the results are read at all versions and in etcd.
//
// Every scenario runs twice, on an API server with a watch cache, which converts when it fills its
// cache, and on one without, which converts when a client reads.
//
// The tests have the build tag integration. make integration builds their dependencies.
package apiserver
