// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates decides which certificate converter pods serve, which authorities
// the CustomResourceDefinition trusts, and in which order both change: API servers trust
// a new authority before a pod serves a certificate of it.
//
// Its Input has the observed Secrets and what the converter says about its endpoints.
// The result is the gate Ready, steps that write Secrets and the caBundle, and two parts
// of the status. rotation.go has the states of a rotation, trust.go what is trusted in
// each. Every source of certificates implements the interface in source.go, which also
// has the Secrets that nothing uses any more.
package certificates
