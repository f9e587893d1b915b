// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast says what the operator will do about a policy. It makes the plans of package plan, one after
// the other, on a simulated cluster that carries them out at once.
//
//	cluster.go      the simulated cluster, and what each step does to it
//	definition.go   the CustomResourceDefinition, as an API server keeps it
//	pods.go, fleets.go, certificates.go
//	                converter pods that start and answer as they should, and their certificates
//	begin.go        a cluster as it was observed, and what a user applies
//	forecast.go     one plan after the other, until nothing happens any more without a user
//	path.go         what happened: stages, actions and the end
//
// The tests of package plan play their stories on the same simulated cluster.
package forecast
