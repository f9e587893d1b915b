// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists measures what conversions add to lists of an API server: of the same objects with
// strategy None, with a converter pod, and with controller-runtime's webhook, for objects of several
// sizes and numbers.
//
//	kinds.go    the kinds, one for each subject, and their objects
//	request.go  a list request
//	suite.go    the curve: lists that are read from etcd, so that every object is converted
//	cached.go   lists of an API server with its default watch cache, which has converted objects
//
// API server, etcd and webhooks are processes, and the client does not decode what it reads.
package lists
