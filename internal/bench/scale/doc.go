// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures a manager with many CustomResourceDefinitions and ConversionPolicies: the time
// until policies are active, and until a change of rules is; the memory of the manager and of the
// converter pods; and what the manager does when nothing changes.
//
//	definitions.go  CustomResourceDefinitions with the schemas of public projects, and their rules
//	cluster.go      kube-apiserver, etcd, and the objects in them
//	nodes.go        acts as controllers and kubelets for Deployments
//	process.go      the measured process of the manager
//	policies.go     creates and changes policies, and waits for them
//	floors.go       what API servers need by themselves
//	memory.go       the memory of manager and pods
//	usage.go        the CPU time of all processes, and requests
//	steps.go        the measurements
//	suite.go        their order
//
// API server, manager and converter pods are real. A pod is a process of the operator's binary, with
// the memory limit of its container, that is called at an address of this machine. Its volumes are
// written as late as a kubelet may write them. A pod starts sooner than on a node: there is no
// scheduler, no image and no container. So with pods of their own (OwnSuite), only the number of pods
// and the memory can be compared with a cluster.
package scale
