// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standards checks the operator's output with the code of other projects: Argo CD's
// interpreter runs the health script of api/docs/gitops.md on statuses, and Kubernetes' Pod
// Security admission checks every pod.
package standards
