// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certmanager tests the operator with cert-manager's own controllers, which run in the test
// process on a real API server: from the Certificate that the operator creates to the certificate
// that converter pods mount.
package certmanager
