// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests config/chart with Helm: it renders the same objects as kustomize, refuses wrong
// values, and is installed, upgraded, rolled back and uninstalled on an API server.
package chart
