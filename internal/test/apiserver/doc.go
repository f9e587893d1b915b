// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests the converter against a real API server, which is the
// one that decides what a conversion is: when it asks for one, what it makes of
// the answer, and what its users see.
//
// There is no operator here. Each scenario has a kind of its own, whose rules
// are compiled as a policy's are, and a converter that runs as in a converter
// pod. What users do is done to the kind at all of its versions, and what comes
// of it is read at all versions, and in etcd.
//
// Every scenario is played twice, on an API server with a watch cache and on
// one without: the first converts what it reads when it fills its cache, the
// second when a client asks.
//
// The tests have the build tag integration: make integration brings what they need.
package apiserver
