// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch applies kustomize patches to objects in memory. It is pure.
//
// It uses the parts of kustomize of which the field `patches` of a kustomization
// is made, and not the whole: that reads from a file system, and sets the schema
// of all of the process each time, which concurrent callers would fight over. A
// patch takes about a millisecond (BenchmarkApply), so that nothing needs to be
// remembered.
//
// What kustomize lets pass is an error here: a target that selects nothing, a
// patch that deletes its object, and one that makes another kind of it.
package patch
