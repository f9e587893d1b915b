// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki issues and checks the certificates of converter pods.
//
// Each policy has its own certificate authority and a serving certificate for its converter pods.
// The certificate of the authority goes into the CustomResourceDefinition's caBundle; its key
// stays in a Secret that no pod mounts. The API server verifies the serving certificate for the
// name <service>.<namespace>.svc.
//
// The package reads no clock: callers pass the time.
package pki
