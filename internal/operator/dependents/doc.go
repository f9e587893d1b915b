// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dependents finds what still names a version of a CustomResourceDefinition, and would
// break when the version goes. It is pure: objects of a cluster go in, dependents come out.
//
// Each source has a file of its own:
//
//	owners.go      ownerReferences of any objects
//	managers.go    field managers that wrote the kind's objects at the version
//	admission.go   rules of admission webhooks and policies
//	references.go  references in other configuration, and copies: autoscalers, Flux, Argo CD, Crossplane
//	contract.go    labels of Cluster API on the CustomResourceDefinition
//	helm.go        release records of Helm
//	readers.go     requests in an audit log of API servers
//
// The Target (target.go) is the kind with the versions that go and those that stay. The Report
// (report.go) holds the dependents. Package live reads them from a cluster, and repairs those that
// belong to no other author.
package dependents
