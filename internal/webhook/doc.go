// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook implements the server that answers the ConversionReviews of API servers.
//
// A converter pod runs it. The pod depends on nothing at run time: its rules and its certificate
// are mounted files, which it follows, and it has no access to the API. It listens once all its
// rulesets are compiled.
// Conversions therefore continue when the operator is down.
//
// The files, in the order of a call:
//
//	server.go    accepts a TLS connection, and ends without losing a call
//	certificate.go follows the serving certificate on disk
//	connection.go limits connections, of each address too, and slow clients
//	handler.go   routes the request: /convert, /admit, /ruleset, /failures, /healthz, /readyz
//	body.go      reads the body, within its limits, into buffers of buffers.go
//	memory.go    counts the memory of bodies and answers, for kinds, addresses and objects
//	limiter.go   makes the call wait for memory to convert and for a processor, fairly to kinds
//	convert.go   runs the exchange: body in, answer out
//	review.go    parses the body in one pass, member by member
//	objects.go   passes each object to the Converter where it is found
//	answer.go    completes the answer, or replaces it by a failure
//	kind.go      has the state of each kind, and leaves processors to other kinds
//	rulesets.go  follows the directory of the rulesets
//	garbage.go   keeps the memory of a pod with many rulesets small
//	metrics.go   counts calls, for Prometheus on a separate port
//	failures.go  remembers which objects failed, for the manager
//
// API servers send one object per review, send a review for every read of an object that is stored
// at another version, and retry only when the answer asks for it. The design goals are therefore:
// low latency for one object, never closing a kept-alive connection during a call, and failure
// messages that a user of kubectl can act on. kubectl shows the message after "conversion webhook
// for <gvk> failed:".
//
// A pod may convert for several CustomResourceDefinitions. No kind affects another: each has its own
// rulesets, metrics and failures, and its part of memory and processors.
//
// A review allocates no memory besides its exchange, which is pooled.
//
// Command converter runs it, with the flags of package pod. Package probe is the client side: it examines a pod that runs this server the way an API server
// would.
package webhook
