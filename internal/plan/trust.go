// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// caBundle is what API servers are to trust, in PEM.
func (s *state) caBundle() []byte { return s.Authority.Data[corev1.TLSCertKey] }
