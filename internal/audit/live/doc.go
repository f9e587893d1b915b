// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live looks over the CustomResourceDefinitions of a cluster, page by
// page, and keeps of each only what was found. It gets and lists, and nothing
// else. What it may not read it reports as not checked.
//
// Whether a conversion webhook works is told by the API server: an object is read
// at each served version (reads.go), with its metadata alone in the answer. That
// goes all the way that clients' requests go. Where there is no object, a TLS
// handshake is tried from here (handshake.go), which says something only where the
// webhook can be reached from here.
package live
