// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit finds risks for the objects of CustomResourceDefinitions, with any
// converter. It is pure: the observed state of one definition goes in (observed.go),
// findings come out (finding.go). It needs no operator.
//
// Each check has a file of its own:
//
//	stored.go      versions in which objects may still be stored
//	none.go        strategy None between versions that differ
//	cabundle.go    what API servers trust of a conversion webhook
//	webhook.go     where its calls go, and whether they arrive
//	bootstrap.go   objects that nodes or pods need in order to start
//	reads.go       objects that the audit read at each served version
//	pruned.go      status.storedVersions that may not be true
//	managers.go    field managers that wrote objects at old versions
//	deprecated.go  deprecated versions that are served
//	conditions.go  conditions of the definition that report an error
//	policies.go    ConversionPolicies that are not ready
//
// The Report (report.go) holds the findings of all definitions, the worst first.
// Package live observes a cluster.
package audit
