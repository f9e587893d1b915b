// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package components builds config/components with config/default by kustomize, and checks that
// monitors select the operator's pods.
package components
