// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit finds risks for the objects of CustomResourceDefinitions, with any
// converter. It is pure: the observed state of one definition goes in (observed.go),
// findings come out (finding.go). It needs no operator.
//
// The checks are in these files:
//
//	stored.go      versions in which objects may still be stored
//	features.go    subresources, selectable fields and columns that clients without a version do not find
//	olm.go         changes that OLM 1 refuses to install
//	none.go        strategy None between versions that differ
//	cabundle.go    what API servers trust of a conversion webhook
//	webhook.go     where its calls go, and whether they arrive
//	rendering.go   a chart that was rendered with several values
//	bootstrap.go   objects that nodes or pods need in order to start
//	reads.go       objects that the audit read at each served version
//	pruned.go      status.storedVersions that may not be true, and field managers that wrote objects at old versions
//	conditions.go  conditions of the definition and its policy that report an error, and deprecated versions
//
// The Report (report.go) holds the findings of all definitions, the worst first.
// Package live observes a cluster.
package audit
