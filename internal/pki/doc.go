// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes and judges the certificates of converter pods.
//
// Each policy has a certificate authority of its own, whose certificate goes
// into the CustomResourceDefinition's caBundle and whose key stays in a Secret
// that no pod mounts, and a serving certificate for the policy's converter pods. The
// API server verifies it for the name <service>.<namespace>.svc.
//
// The package reads no clock: callers pass the time.
package pki
