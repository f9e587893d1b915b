// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan is the command plan: what the operator will do about a policy, and what has to be true outside of
// it. The forecast itself is internal/operator/plan/forecast.
//
//	report.go  the report
//	needs.go   what has to be true outside of the operator, and what the forecast assumes
//	text.go    the report as text
package plan
