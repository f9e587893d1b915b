// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standards tests what other projects read and require of what the operator
// writes, with their own code: Argo CD's interpreter runs the health script of
// api/docs/gitops.md, and Kubernetes' Pod Security admission judges every pod.
package standards
