// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live examines the CustomResourceDefinitions of a cluster, page by page, and
// stores only findings. It only gets and lists. It reports as not checked what it may
// not read.
//
// The API server tells whether a conversion webhook works: the audit reads an object at
// each served version (reads.go), with only its metadata in the answer. That takes the
// same path as clients' requests. If there is no object, the audit tries a TLS handshake
// itself (webhook.go), which has a result only if it can reach the webhook.
package live
