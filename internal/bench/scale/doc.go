// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures one manager beside many CustomResourceDefinitions and
// ConversionPolicies: its memory, its CPU time at rest, what it writes when
// nothing changes, and how long a policy takes until it is active.
//
//	definitions.go  the CustomResourceDefinitions, of the schemas of public projects
//	cluster.go      a kube-apiserver and an etcd, and all that is made there
//	nodes.go        what controllers and kubelets of a cluster would do about Deployments
//	converters.go   the converter pods, all in one process, with the real webhook
//	manager.go      the manager's process
//	suite.go        what is measured, in order
//
// The API server, the manager and the webhook are the real ones. Pods are not:
// four hundred would measure the node, not the manager.
package scale
