// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures a manager with many CustomResourceDefinitions and ConversionPolicies: its
// memory, its idle CPU time, its writes when nothing changes, and the time until a policy is
// active.
//
//	definitions.go  CustomResourceDefinitions with the schemas of public projects
//	cluster.go      kube-apiserver, etcd, and the objects in them
//	nodes.go        acts as controllers and kubelets for Deployments
//	converters.go   the converter pods, in one process, with the real webhook
//	process.go      the measured process
//	suite.go        the order of measurements
//
// API server, manager and webhook are real. Pods are not: four hundred would measure the node, not
// the manager.
package scale
