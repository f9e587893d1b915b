// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch applies kustomize patches to objects in memory. It is pure.
//
// It uses kustomize's own transformer for the field `patches` of a
// kustomization, and not the whole of kustomize: that reads from a file system,
// and sets the schema of all of the process each time. A patch takes less than a
// millisecond (BenchmarkApply), so that nothing needs to be remembered.
//
// What kustomize lets pass is an error here: a target that selects nothing, a
// patch that deletes its object, and one that makes another kind of it.
package patch
