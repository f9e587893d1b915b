// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package components tests what config/components adds to config/default for those
// who watch over it: that kustomize builds it, and that it finds the pods there are.
package components
